package minicontroller;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.errors.InvalidReplicaAssignmentException;
import org.apache.kafka.common.errors.NoReassignmentInProgressException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.junit.jupiter.api.Test;

/** Replicas are moved. */
class ReassignmentsTest extends ClusterTest {
    private List<Integer> replicas() throws Exception {
        TopicPartitionInfo partition = describe(topic).partitions().get(0);
        return partition.replicas().stream().map(Node::id).toList();
    }

    private static Optional<NewPartitionReassignment> to(Integer... brokers) {
        return Optional.of(new NewPartitionReassignment(List.of(brokers)));
    }

    /** A partition moves to other brokers, and nothing is left to be listed or cancelled (K4-A1). */
    @Test
    void moves() throws Exception {
        create(new NewTopic(topic, Map.of(0, List.of(1, 2))));
        TopicPartition partition = new TopicPartition(topic, 0);
        admin.alterPartitionReassignments(Map.of(partition, to(2, 3))).all().get();
        until(this::replicas, List.of(2, 3)::equals);
        until(() -> admin.listPartitionReassignments(Set.of(partition)).reassignments().get(), Map::isEmpty);
        refusal(
            NoReassignmentInProgressException.class,
            admin.alterPartitionReassignments(Map.of(partition, Optional.empty())).values().get(partition)
        );
    }

    /** Each partition is refused by itself, with Kafka's codes. */
    @Test
    void refuses() throws Exception {
        create(new NewTopic(topic, Map.of(0, List.of(1), 1, List.of(1))));
        TopicPartition first = new TopicPartition(topic, 0);
        TopicPartition missing = new TopicPartition(topic, 7);
        var refused = admin.alterPartitionReassignments(Map.of(first, to(1, 99), missing, to(1))).values();
        refusal(InvalidReplicaAssignmentException.class, refused.get(first));
        refusal(UnknownTopicOrPartitionException.class, refused.get(missing));
    }
}
