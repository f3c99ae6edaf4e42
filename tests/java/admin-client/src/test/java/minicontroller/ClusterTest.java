package minicontroller;

import java.io.IOException;
import java.io.Reader;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.function.Predicate;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.KafkaFuture;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

/** A client of the cluster under test, and a topic's name that no other test has. */
abstract class ClusterTest {
    static final String BOOTSTRAP = System.getProperty("bootstrap.servers");
    static final List<String> NODES = List.of(System.getProperty("nodes").split(","));
    private static final Duration PATIENCE = Duration.ofSeconds(20);
    private static final Duration PAUSE = Duration.ofMillis(20);

    Admin admin;
    final String topic = "j-" + UUID.randomUUID();

    @BeforeEach
    void connect() {
        admin = connect(BOOTSTRAP);
    }

    @AfterEach
    void close() {
        admin.close();
    }

    static Admin connect(String bootstrap) {
        return connect(bootstrap, Map.of());
    }

    /** By SASL/PLAIN where a user is given, and as a file says where one is. */
    static Admin connect(String bootstrap, Map<String, Object> more) {
        Map<String, Object> settings = new HashMap<>(Map.of(
            AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap,
            AdminClientConfig.DEFAULT_API_TIMEOUT_MS_CONFIG, "15000",
            AdminClientConfig.REQUEST_TIMEOUT_MS_CONFIG, "10000"));
        if (!System.getProperty("user").isEmpty()) {
            settings.put("security.protocol", "SASL_PLAINTEXT");
            settings.put("sasl.mechanism", "PLAIN");
            settings.put("sasl.jaas.config", jaas(System.getProperty("password")));
        }
        settings.putAll(fromFile(System.getProperty("client.config")));
        settings.putAll(more);
        return Admin.create(settings);
    }

    private static Map<String, Object> fromFile(String file) {
        Map<String, Object> settings = new HashMap<>();
        if (!file.isEmpty()) {
            try (Reader reader = Files.newBufferedReader(Path.of(file))) {
                Properties properties = new Properties();
                properties.load(reader);
                properties.forEach((key, value) -> settings.put((String) key, value));
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }
        return settings;
    }

    static String jaas(String password) {
        return jaas("org.apache.kafka.common.security.plain.PlainLoginModule", password);
    }

    static String jaas(String module, String password) {
        return "%s required username=\"%s\" password=\"%s\";".formatted(module, System.getProperty("user"), password);
    }

    void create(NewTopic... topics) throws Exception {
        admin.createTopics(List.of(topics)).all().get();
        for (NewTopic each : topics) {
            untilEverywhere(each.name());
        }
    }

    TopicDescription describe(String name) throws Exception {
        return admin.describeTopics(Set.of(name)).allTopicNames().get().get(name);
    }

    /** Waits until every node shows the topic: the client asks any of them. */
    void untilEverywhere(String name) throws Exception {
        for (String address : NODES) {
            try (Admin one = connect(address)) {
                until(() -> one.listTopics().names().get(), names -> names.contains(name));
            }
        }
    }

    static <T> T until(Callable<T> look, Predicate<T> right) throws Exception {
        Instant deadline = Instant.now().plus(PATIENCE);
        while (true) {
            T seen = look.call();
            if (right.test(seen)) {
                return seen;
            }
            if (Instant.now().isAfter(deadline)) {
                throw new AssertionError("after " + PATIENCE + " it is still " + seen);
            }
            Thread.sleep(PAUSE.toMillis());
        }
    }

    /** The error with which one element is refused, of exactly this class. */
    static <E extends Exception> E refusal(Class<E> expected, KafkaFuture<?> future) {
        ExecutionException thrown = assertThrows(ExecutionException.class, future::get);
        assertEquals(expected, thrown.getCause().getClass(), thrown.getCause()::toString);
        return expected.cast(thrown.getCause());
    }
}
