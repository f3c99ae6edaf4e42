package minicontroller;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.CreatePartitionsOptions;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.CreateTopicsResult;
import org.apache.kafka.clients.admin.DescribeTopicsOptions;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicCollection;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.InvalidConfigurationException;
import org.apache.kafka.common.errors.InvalidPartitionsException;
import org.apache.kafka.common.errors.InvalidReplicaAssignmentException;
import org.apache.kafka.common.errors.InvalidReplicationFactorException;
import org.apache.kafka.common.errors.InvalidRequestException;
import org.apache.kafka.common.errors.InvalidTopicException;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.junit.jupiter.api.Test;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

/** Topics are made, grown and deleted. */
class TopicsTest extends ClusterTest {
    private static List<Integer> ids(List<Node> nodes) {
        return nodes.stream().map(Node::id).toList();
    }

    private Map<Integer, List<Integer>> replicas() throws Exception {
        return describe(topic).partitions().stream()
            .collect(Collectors.toMap(TopicPartitionInfo::partition, each -> ids(each.replicas())));
    }

    private KafkaFutureOf creation(NewTopic wish) {
        return new KafkaFutureOf(admin.createTopics(Set.of(wish)), wish.name());
    }

    /** One element of the answer. */
    private record KafkaFutureOf(CreateTopicsResult result, String name) {
        <E extends Exception> E refused(Class<E> expected) {
            return refusal(expected, result.values().get(name));
        }
    }

    /** The answer tells what was resolved, and every partition is led by its first replica (K4-C4, K4-C5). */
    @Test
    void createsWithCounts() throws Exception {
        NewTopic wish = new NewTopic(topic, 3, (short) 2).configs(Map.of("retention.ms", "1000"));
        CreateTopicsResult made = admin.createTopics(Set.of(wish));
        assertEquals(3, made.numPartitions(topic).get());
        assertEquals(2, made.replicationFactor(topic).get());
        assertEquals("1000", made.config(topic).get().get("retention.ms").value());
        untilEverywhere(topic);
        TopicDescription seen = describe(topic);
        assertEquals(made.topicId(topic).get(), seen.topicId());
        assertNotEquals(Uuid.ZERO_UUID, seen.topicId());
        for (TopicPartitionInfo partition : seen.partitions()) {
            assertEquals(partition.replicas().get(0), partition.leader());
            assertEquals(Set.copyOf(partition.replicas()), Set.copyOf(partition.isr()));
        }
    }

    /** Counts that are not given are the broker's defaults (K4-C4). */
    @Test
    void createsWithDefaults() throws Exception {
        CreateTopicsResult made = admin.createTopics(Set.of(new NewTopic(topic, Optional.empty(), Optional.empty())));
        assertEquals(1, made.numPartitions(topic).get());
        assertEquals(1, made.replicationFactor(topic).get());
    }

    /** Replicas given by hand are taken as they are (K4-C4). */
    @Test
    void createsPlacedByHand() throws Exception {
        create(new NewTopic(topic, Map.of(0, List.of(3, 1), 1, List.of(2, 3))));
        assertEquals(Map.of(0, List.of(3, 1), 1, List.of(2, 3)), replicas());
    }

    /** A dry run tells what would be, and makes nothing. */
    @Test
    void validatesOnly() throws Exception {
        CreateTopicsOptions dry = new CreateTopicsOptions().validateOnly(true);
        CreateTopicsResult made = admin.createTopics(Set.of(new NewTopic(topic, 5, (short) 1)), dry);
        assertEquals(5, made.numPartitions(topic).get());
        assertFalse(admin.listTopics().names().get().contains(topic));
    }

    /** Each fault has an error of its own, with a text that names it (K4-3, K4-C8). */
    @Test
    void refusesWhatCannotBe() throws Exception {
        assertTrue(creation(new NewTopic("no spaces please", 1, (short) 1)).refused(InvalidTopicException.class)
            .getMessage().contains("no spaces please"));
        creation(new NewTopic(topic, 1, (short) 4)).refused(InvalidReplicationFactorException.class);
        creation(new NewTopic(topic, 0, (short) 1)).refused(InvalidPartitionsException.class);
        creation(new NewTopic(topic, 1, (short) 1).configs(Map.of("no.such", "1"))).refused(InvalidConfigurationException.class);
        creation(new NewTopic(topic, Map.of(0, List.of(1), 2, List.of(1)))).refused(InvalidReplicaAssignmentException.class);
        creation(new NewTopic("__cluster_metadata", 1, (short) 1)).refused(InvalidRequestException.class);
        assertFalse(admin.listTopics().names().get().contains(topic));
    }

    /** An existing topic is refused, and its neighbour is made (K4-2). */
    @Test
    void refusesWhatExists() throws Exception {
        create(new NewTopic(topic, 1, (short) 1));
        NewTopic neighbour = new NewTopic(topic + "-2", 1, (short) 1);
        CreateTopicsResult made = admin.createTopics(List.of(new NewTopic(topic, 2, (short) 1), neighbour));
        refusal(TopicExistsException.class, made.values().get(topic));
        made.values().get(topic + "-2").get();
    }

    /** By name: gone from the list; an unknown one is refused (K4-D2, K4-D5). */
    @Test
    void deletesByName() throws Exception {
        create(new NewTopic(topic, 2, (short) 2));
        var deleted = admin.deleteTopics(List.of(topic, topic + "-no")).topicNameValues();
        deleted.get(topic).get();
        refusal(UnknownTopicOrPartitionException.class, deleted.get(topic + "-no"));
        until(() -> admin.listTopics().names().get(), names -> !names.contains(topic));
    }

    /** By id, and described by it. */
    @Test
    void describesAndDeletesById() throws Exception {
        create(new NewTopic(topic, 1, (short) 1));
        Uuid id = describe(topic).topicId();
        TopicCollection ids = TopicCollection.ofTopicIds(Set.of(id));
        assertEquals(topic, admin.describeTopics(ids).allTopicIds().get().get(id).name());
        admin.deleteTopics(ids).all().get();
        until(() -> admin.listTopics().names().get(), names -> !names.contains(topic));
    }

    /** Partitions are added as chosen and by hand, and never fewer than there are (K4-A1, K4-A3). */
    @Test
    void grows() throws Exception {
        create(new NewTopic(topic, Map.of(0, List.of(1, 2))));
        Map<String, NewPartitions> more = Map.of(topic, NewPartitions.increaseTo(9));
        admin.createPartitions(more, new CreatePartitionsOptions().validateOnly(true)).all().get();
        admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(2, List.of(List.of(3, 1))))).all().get();
        admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(4))).all().get();
        Map<Integer, List<Integer>> seen = until(this::replicas, found -> found.size() == 4);
        assertEquals(List.of(3, 1), seen.get(1));
        refusal(InvalidPartitionsException.class,
            admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(3))).values().get(topic));
        refusal(UnknownTopicOrPartitionException.class,
            admin.createPartitions(Map.of(topic + "-no", NewPartitions.increaseTo(3))).values().get(topic + "-no"));
    }

    /** Many partitions are described page by page, with the operations that one may do. */
    @Test
    void describesManyPartitions() throws Exception {
        create(new NewTopic(topic, 30, (short) 3));
        DescribeTopicsOptions options = new DescribeTopicsOptions().includeAuthorizedOperations(true).partitionSizeLimitPerResponse(7);
        TopicDescription seen = until(
            () -> admin.describeTopics(Set.of(topic), options).allTopicNames().get().get(topic),
            found -> found.partitions().size() == 30);
        assertEquals(8, seen.authorizedOperations().size());
    }

    /** An unknown topic is refused. */
    @Test
    void describesNothingUnknown() {
        refusal(UnknownTopicOrPartitionException.class, admin.describeTopics(Set.of(topic)).topicNameValues().get(topic));
    }
}
