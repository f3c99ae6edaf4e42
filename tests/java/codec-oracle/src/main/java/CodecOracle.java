import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.BufferedOutputStream;
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
 * Reads and writes messages with the classes of kafka-clients.
 *
 * Question: "r" or "w", name of the message (modified UTF-8), version (int16), size (int32), bytes: the message to read, or the JSON
 * of the message to write. Answer: a status byte. 1, when reading: bytes left over (int32), the message written again (int32 and
 * bytes), the message as JSON (int32 and bytes). 1, when writing: the message (int32 and bytes). 0: why not (int32 and bytes).
 */
public final class CodecOracle {
    private static final String PACKAGE = "org.apache.kafka.common.message.";
    private static final Map<String, Class<?>> CLASSES = new HashMap<>();

    public static void main(String[] arguments) throws Exception {
        DataInputStream in = new DataInputStream(new java.io.BufferedInputStream(System.in));
        DataOutputStream out = new DataOutputStream(new BufferedOutputStream(System.out));
        while (true) {
            int operation = in.read();
            if (operation < 0) {
                return;
            }
            String name = in.readUTF();
            short version = in.readShort();
            byte[] bytes = new byte[in.readInt()];
            in.readFully(bytes);
            if (operation == 'w') {
                write(name, version, bytes, out);
            } else {
                read(name, version, ByteBuffer.wrap(bytes), out);
            }
            out.flush();
        }
    }

    private static void read(String name, short version, ByteBuffer bytes, DataOutputStream out) throws Exception {
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
            json = (JsonNode) converter(name).getMethod("write", type(name), short.class).invoke(null, message, version);
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

    private static void write(String name, short version, byte[] json, DataOutputStream out) throws Exception {
        byte[] written;
        try {
            JsonNode node = new ObjectMapper().readTree(json);
            Method reader = converter(name).getMethod("read", JsonNode.class, short.class);
            ByteBuffer buffer = MessageUtil.toByteBuffer((Message) reader.invoke(null, node, version), version);
            written = new byte[buffer.remaining()];
            buffer.get(written);
        } catch (RuntimeException | ReflectiveOperationException refused) {
            out.writeByte(0);
            block(String.valueOf(refused.getCause() == null ? refused : refused.getCause()).getBytes(StandardCharsets.UTF_8), out);
            return;
        }
        out.writeByte(1);
        block(written, out);
    }

    private static Class<?> type(String name) throws ClassNotFoundException {
        return named(name + "Data");
    }

    private static Class<?> converter(String name) throws ClassNotFoundException {
        return named(name + "DataJsonConverter");
    }

    private static Class<?> named(String name) throws ClassNotFoundException {
        Class<?> known = CLASSES.get(name);
        if (known == null) {
            known = Class.forName(PACKAGE + name);
            CLASSES.put(name, known);
        }
        return known;
    }

    private static void block(byte[] bytes, DataOutputStream out) throws IOException {
        out.writeInt(bytes.length);
        out.write(bytes);
    }
}
