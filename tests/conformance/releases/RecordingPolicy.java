import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.server.policy.AlterConfigPolicy;

/** Allows everything, and writes what it is asked to the file that `recording.policy.file` names. */
public class RecordingPolicy implements AlterConfigPolicy {
    private Path file;

    @Override
    public void configure(Map<String, ?> configs) {
        file = Path.of((String) configs.get("recording.policy.file"));
    }

    @Override
    public synchronized void validate(RequestMetadata asked) {
        StringBuilder line = new StringBuilder();
        line.append(asked.resource().type()).append('\t').append(asked.resource().name());
        new TreeMap<>(asked.configs()).forEach((key, value) ->
            line.append('\t').append(key).append('\t').append(value == null ? "-" : "=" + value));
        try {
            Files.writeString(file, line.append('\n'), StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        } catch (java.io.IOException error) {
            throw new java.io.UncheckedIOException(error);
        }
    }

    @Override
    public void close() {
    }
}
