import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.BufferedOutputStream;
import java.io.IOException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/**
 * Reads and writes messages with the classes of kafka-clients.
 *
 * Question: "r" or "w", name of the message (modified UTF-8), version (int16), size (int32), bytes: the message to read, or the JSON
 * of the message to write; "q" writes a request with its header, whose fields
 * have their defaults if there is no JSON. Answer: a status byte. 1, when reading: bytes left over (int32), the message written again (int32 and
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
            if (operation == 'q') {
                request(name, version, bytes, out);
            } else if (operation == 'w') {
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
            written = bytes(message, version);
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
            written = bytes(parsed(name, version, json), version);
        } catch (RuntimeException | ReflectiveOperationException refused) {
            out.writeByte(0);
            block(String.valueOf(refused.getCause() == null ? refused : refused.getCause()).getBytes(StandardCharsets.UTF_8), out);
            return;
        }
        out.writeByte(1);
        block(written, out);
    }

    private static void request(String name, short version, byte[] json, DataOutputStream out) throws Exception {
        byte[] written;
        try {
            ApiMessage message = json.length == 0 ? (ApiMessage) type(name).getConstructor().newInstance() : (ApiMessage) parsed(name, version, json);
            RequestHeaderData header = new RequestHeaderData().setRequestApiKey(message.apiKey()).setRequestApiVersion(version).setCorrelationId(7).setClientId("oracle");
            byte[] head = bytes(header, ApiMessageType.fromApiKey(message.apiKey()).requestHeaderVersion(version));
            byte[] body = bytes(message, version);
            written = Arrays.copyOf(head, head.length + body.length);
            System.arraycopy(body, 0, written, head.length, body.length);
        } catch (RuntimeException | ReflectiveOperationException refused) {
            out.writeByte(0);
            block(String.valueOf(refused.getCause() == null ? refused : refused.getCause()).getBytes(StandardCharsets.UTF_8), out);
            return;
        }
        out.writeByte(1);
        block(written, out);
    }

    private static byte[] bytes(Message message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(buffer), cache, version);
        return buffer.array();
    }

    private static Message parsed(String name, short version, byte[] json) throws IOException, ReflectiveOperationException {
        JsonNode node = new ObjectMapper().readTree(json);
        Method reader = converter(name).getMethod("read", JsonNode.class, short.class);
        return (Message) reader.invoke(null, node, version);
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
