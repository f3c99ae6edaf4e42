package minicontroller;

import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.AlterConfigOp.OpType;
import org.apache.kafka.clients.admin.AlterConfigsOptions;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConfigEntry.ConfigSource;
import org.apache.kafka.clients.admin.ConfigEntry.ConfigType;
import org.apache.kafka.clients.admin.DescribeConfigsOptions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.InvalidConfigurationException;
import org.apache.kafka.common.errors.InvalidRequestException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.junit.jupiter.api.Test;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

/** Configs of topics, nodes and the cluster's default. */
class ConfigsTest extends ClusterTest {
    private static final ConfigResource NODE = new ConfigResource(ConfigResource.Type.BROKER, "2");
    private static final ConfigResource DEFAULT = new ConfigResource(ConfigResource.Type.BROKER, "");

    private ConfigResource ofTopic() {
        return new ConfigResource(ConfigResource.Type.TOPIC, topic);
    }

    private Config described(ConfigResource resource) throws Exception {
        DescribeConfigsOptions all = new DescribeConfigsOptions().includeSynonyms(true).includeDocumentation(true);
        return admin.describeConfigs(Set.of(resource), all).all().get().get(resource);
    }

    private static AlterConfigOp step(String key, String value, OpType operation) {
        return new AlterConfigOp(new ConfigEntry(key, value), operation);
    }

    private void change(ConfigResource resource, AlterConfigOp... steps) throws Exception {
        admin.incrementalAlterConfigs(Map.of(resource, List.of(steps))).all().get();
    }

    /** Value, source, type, synonyms and documentation of each. */
    @Test
    void describesATopic() throws Exception {
        create(new NewTopic(topic, 1, (short) 1).configs(Map.of("cleanup.policy", "compact")));
        Config seen = described(ofTopic());
        ConfigEntry policy = seen.get("cleanup.policy");
        assertEquals("compact", policy.value());
        assertEquals(ConfigSource.DYNAMIC_TOPIC_CONFIG, policy.source());
        assertEquals(ConfigType.LIST, policy.type());
        assertEquals(2, policy.synonyms().size());
        for (ConfigEntry entry : seen.entries()) {
            assertFalse(entry.documentation() == null || entry.documentation().isBlank(), entry.name());
            assertFalse(entry.type() == ConfigType.UNKNOWN || entry.source() == ConfigSource.UNKNOWN, entry.name());
        }
    }

    /** Hundreds of keys; the fixed ones are read-only. */
    @Test
    void describesANode() throws Exception {
        Config seen = described(NODE);
        assertEquals("2", seen.get("broker.id").value());
        assertTrue(seen.get("broker.id").isReadOnly());
        assertFalse(seen.get("log.retention.ms").isReadOnly());
        assertNotNull(seen.get("advertised.listeners"));
    }

    /** Set, append, subtract, delete; a dry run before. */
    @Test
    void changesATopicInSteps() throws Exception {
        create(new NewTopic(topic, 1, (short) 1).configs(Map.of("segment.ms", "5000")));
        AlterConfigOp set = step("retention.ms", "2000", OpType.SET);
        admin.incrementalAlterConfigs(Map.of(ofTopic(), List.of(set)), new AlterConfigsOptions().validateOnly(true)).all().get();
        assertEquals("604800000", described(ofTopic()).get("retention.ms").value());
        change(ofTopic(), set, step("cleanup.policy", "compact", OpType.APPEND), step("segment.ms", "", OpType.DELETE));
        Config seen = until(() -> described(ofTopic()), now -> now.get("retention.ms").value().equals("2000"));
        assertEquals("delete,compact", seen.get("cleanup.policy").value());
        assertTrue(seen.get("segment.ms").isDefault());
        change(ofTopic(), step("cleanup.policy", "delete", OpType.SUBTRACT));
        until(() -> described(ofTopic()), now -> now.get("cleanup.policy").value().equals("compact"));
    }

    /** Bad keys, values and topics are refused, each by itself (K4-2, K4-3). */
    @Test
    void refusesWhatCannotBe() throws Exception {
        create(new NewTopic(topic, 1, (short) 1));
        for (AlterConfigOp bad : List.of(
            step("no.such.key", "1", OpType.SET), step("retention.ms", "soon", OpType.SET), step("retention.ms", "1", OpType.APPEND))) {
            refusal(InvalidConfigurationException.class,
                admin.incrementalAlterConfigs(Map.of(ofTopic(), List.of(bad))).values().get(ofTopic()));
        }
        ConfigResource unknown = new ConfigResource(ConfigResource.Type.TOPIC, topic + "-no");
        var both = admin.incrementalAlterConfigs(Map.of(
            unknown, List.of(step("retention.ms", "1", OpType.SET)), ofTopic(), List.of(step("retention.ms", "1", OpType.SET))));
        refusal(UnknownTopicOrPartitionException.class, both.values().get(unknown));
        both.values().get(ofTopic()).get();
        refusal(UnknownTopicOrPartitionException.class, admin.describeConfigs(Set.of(unknown)).values().get(unknown));
    }

    /** A node's own config goes before the cluster's default, and both before the built-in one. */
    @Test
    void changesANodeAndTheDefault() throws Exception {
        String key = "log.cleaner.delete.retention.ms";
        change(DEFAULT, step(key, "1111", OpType.SET));
        until(() -> described(DEFAULT), now -> now.get(key) != null && now.get(key).value().equals("1111"));
        Config byDefault = until(() -> described(NODE), now -> now.get(key).value().equals("1111"));
        assertEquals(ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, byDefault.get(key).source());
        change(NODE, step(key, "2222", OpType.SET));
        Config own = until(() -> described(NODE), now -> now.get(key).value().equals("2222"));
        assertEquals(ConfigSource.DYNAMIC_BROKER_CONFIG, own.get(key).source());
        change(NODE, step(key, "", OpType.DELETE));
        change(DEFAULT, step(key, "", OpType.DELETE));
        until(() -> described(NODE), now -> now.get(key).source() == ConfigSource.DEFAULT_CONFIG);
    }

    /** What is read at start only is not changed. */
    @Test
    void refusesAFixedConfig() {
        refusal(InvalidRequestException.class,
            admin.incrementalAlterConfigs(Map.of(NODE, List.of(step("broker.id", "7", OpType.SET)))).values().get(NODE));
    }
}
