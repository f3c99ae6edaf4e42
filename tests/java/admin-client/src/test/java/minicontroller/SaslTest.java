package minicontroller;

import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.errors.PolicyViolationException;
import org.apache.kafka.common.errors.SaslAuthenticationException;
import org.apache.kafka.common.errors.UnsupportedSaslMechanismException;
import org.junit.jupiter.api.Test;

import static org.junit.jupiter.api.Assertions.assertTrue;

/** A cluster that authenticates its clients; asked for by name, since it needs `-Duser` and `-Dpassword`. */
class SaslTest extends ClusterTest {
    /** The policy at the controller sees who authenticated, whichever node he is connected to (K590-2). */
    @Test
    void isKnownToThePolicy() {
        String name = "forbidden-" + topic;
        String told = refusal(PolicyViolationException.class,
            admin.createTopics(Set.of(new NewTopic(name, 1, (short) 1))).values().get(name)).getMessage();
        assertTrue(told.contains("refused to User:" + System.getProperty("user")), told);
    }

    /** A wrong password is told at once, in Kafka's words: the client does not try again. */
    @Test
    void readsThatThePasswordIsWrong() {
        try (Admin guesser = connect(BOOTSTRAP, Map.of("sasl.jaas.config", jaas("guess")))) {
            String told = refusal(SaslAuthenticationException.class, guesser.listTopics().names()).getMessage();
            assertTrue(told.contains("Authentication failed: Invalid username or password"), told);
        }
    }

    /** So is a mechanism that the listener does not offer, with those that it does. */
    @Test
    void readsWhichMechanismsThereAre() {
        Map<String, Object> scram = Map.of(
            "sasl.mechanism", "SCRAM-SHA-256",
            "sasl.jaas.config", jaas("org.apache.kafka.common.security.scram.ScramLoginModule", "guess"));
        try (Admin other = connect(BOOTSTRAP, scram)) {
            String told = refusal(UnsupportedSaslMechanismException.class, other.listTopics().names()).getMessage();
            assertTrue(told.contains("[PLAIN]"), told);
        }
    }
}
