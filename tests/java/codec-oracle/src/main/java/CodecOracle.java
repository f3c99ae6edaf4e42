import com.fasterxml.jackson.databind.JsonNode;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.BufferedOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;

/**
 * Reads messages with the classes of kafka-clients and tells what they found.
 *
 * Question: name of the message (modified UTF-8), version (int16), size (int32), bytes.
 * Answer: a status byte. 1: bytes left over (int32), the message written again (int32 and bytes), the message as JSON (int32 and
 * bytes). 0: why it could not be read (int32 and bytes).
 */
public final class CodecOracle {
    private static final String PACKAGE = "org.apache.kafka.common.message.";
    private static final Map<String, Method> CONVERTERS = new HashMap<>();
    private static final Map<String, Class<?>> CLASSES = new HashMap<>();

    public static void main(String[] arguments) throws Exception {
        DataInputStream in = new DataInputStream(new java.io.BufferedInputStream(System.in));
        DataOutputStream out = new DataOutputStream(new BufferedOutputStream(System.out));
        while (true) {
            String name;
            try {
                name = in.readUTF();
            } catch (EOFException end) {
                return;
            }
            short version = in.readShort();
            byte[] bytes = new byte[in.readInt()];
            in.readFully(bytes);
            answer(name, version, ByteBuffer.wrap(bytes), out);
            out.flush();
        }
    }

    private static void answer(String name, short version, ByteBuffer bytes, DataOutputStream out) throws Exception {
        Message message = (Message) type(name).getConstructor().newInstance();
        try {
            message.read(new ByteBufferAccessor(bytes), version);
        } catch (RuntimeException refused) {
            out.writeByte(0);
            block(String.valueOf(refused).getBytes(StandardCharsets.UTF_8), out);
            return;
        }
        byte[] written;
        JsonNode json;
        try {
            ByteBuffer again = MessageUtil.toByteBuffer(message, version);
            written = new byte[again.remaining()];
            again.get(written);
            json = (JsonNode) converter(name).invoke(null, message, version);
        } catch (RuntimeException | ReflectiveOperationException unwritable) {
            out.writeByte(0);
            block(("read, but cannot be written: " + unwritable).getBytes(StandardCharsets.UTF_8), out);
            return;
        }
        out.writeByte(1);
        out.writeInt(bytes.remaining());
        block(written, out);
        block(json.toString().getBytes(StandardCharsets.UTF_8), out);
    }

    private static Class<?> type(String name) throws ClassNotFoundException {
        Class<?> known = CLASSES.get(name);
        if (known == null) {
            known = Class.forName(PACKAGE + name + "Data");
            CLASSES.put(name, known);
        }
        return known;
    }

    private static Method converter(String name) throws ReflectiveOperationException {
        Method known = CONVERTERS.get(name);
        if (known == null) {
            Class<?> converters = Class.forName(PACKAGE + name + "DataJsonConverter");
            known = converters.getMethod("write", type(name), short.class);
            CONVERTERS.put(name, known);
        }
        return known;
    }

    private static void block(byte[] bytes, DataOutputStream out) throws IOException {
        out.writeInt(bytes.length);
        out.write(bytes);
    }
}
