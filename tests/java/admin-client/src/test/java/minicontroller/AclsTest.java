package minicontroller;

import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.DescribeTopicsOptions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.acl.AccessControlEntryFilter;
import org.apache.kafka.common.errors.ClusterAuthorizationException;
import org.apache.kafka.common.errors.InvalidRequestException;
import org.apache.kafka.common.errors.TopicAuthorizationException;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourcePatternFilter;
import org.apache.kafka.common.resource.ResourceType;
import org.junit.jupiter.api.Test;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

/** A cluster with an authorizer, whose super user is `-Duser`; alice, with the password of her name, is none. */
class AclsTest extends ClusterTest {
    private static final Map<String, Object> ALICE = Map.of("sasl.jaas.config",
        "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"alice\" password=\"alice-secret\";");

    private static AclBinding allow(String name, PatternType pattern, AclOperation operation) {
        return new AclBinding(new ResourcePattern(ResourceType.TOPIC, name, pattern),
            new AccessControlEntry("User:alice", "*", operation, AclPermissionType.ALLOW));
    }

    private static Set<AclOperation> operations(Admin client, String topic) throws Exception {
        DescribeTopicsOptions asking = new DescribeTopicsOptions().includeAuthorizedOperations(true);
        TopicDescription described = client.describeTopics(Set.of(topic), asking).allTopicNames().get().get(topic);
        return described.authorizedOperations();
    }

    /** An ACL is added, found, in force for whoever it is about, and removed. */
    @Test
    void letsOthersDoWhatAclsSay() throws Exception {
        create(new NewTopic(topic, 1, (short) 1));
        AclBinding describe = allow(topic, PatternType.LITERAL, AclOperation.DESCRIBE);
        AclBinding alter = allow(topic.substring(0, 20), PatternType.PREFIXED, AclOperation.ALTER_CONFIGS);
        try (Admin alice = connect(BOOTSTRAP, ALICE)) {
            refusal(TopicAuthorizationException.class, alice.describeTopics(Set.of(topic)).allTopicNames());
            admin.createAcls(List.of(describe, alter)).all().get();
            assertEquals(
                Set.of(AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS),
                operations(alice, topic));
            refusal(TopicAuthorizationException.class, alice.deleteTopics(Set.of(topic)).all());
            refusal(ClusterAuthorizationException.class, alice.describeAcls(AclBindingFilter.ANY).values());
            refusal(ClusterAuthorizationException.class, alice.createAcls(List.of(alter)).all());
            refusal(ClusterAuthorizationException.class, alice.deleteAcls(List.of(AclBindingFilter.ANY)).all());

            AclBindingFilter applying = new AclBindingFilter(
                new ResourcePatternFilter(ResourceType.TOPIC, topic, PatternType.MATCH), AccessControlEntryFilter.ANY);
            assertEquals(Set.of(describe, alter), Set.copyOf(admin.describeAcls(applying).values().get()));
            assertEquals(Set.of(describe, alter), Set.copyOf(admin.deleteAcls(List.of(applying)).all().get()));
            refusal(TopicAuthorizationException.class, alice.describeTopics(Set.of(topic)).allTopicNames());
        }
        assertTrue(operations(admin, topic).contains(AclOperation.DELETE));
    }

    /** An ACL that cannot be is refused by itself, in a sentence. */
    @Test
    void readsWhyAnAclIsRefused() throws Exception {
        AclBinding bad = allow("a/b", PatternType.LITERAL, AclOperation.READ);
        AclBinding good = allow(topic, PatternType.LITERAL, AclOperation.READ);
        var added = admin.createAcls(List.of(bad, good)).values();
        String told = refusal(InvalidRequestException.class, added.get(bad)).getMessage();
        assertTrue(told.startsWith("Failed to create ACL"), told);
        assertEquals(Set.of(good), Set.copyOf(admin.deleteAcls(List.of(good.toFilter())).all().get()));
    }
}
