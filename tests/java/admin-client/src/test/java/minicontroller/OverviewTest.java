package minicontroller;

import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.DescribeClusterOptions;
import org.apache.kafka.clients.admin.DescribeClusterResult;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.junit.jupiter.api.Test;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

/** The cluster, its groups and its reassignments, from whichever node one starts. */
class OverviewTest extends ClusterTest {
    private static List<String> addresses(Collection<Node> nodes) {
        return nodes.stream().map(node -> node.host() + ":" + node.port()).sorted().toList();
    }

    /** Nodes, controller, id, operations (K4-X1). */
    @Test
    void describesTheCluster() throws Exception {
        DescribeClusterResult seen = admin.describeCluster(new DescribeClusterOptions().includeAuthorizedOperations(true));
        assertEquals(NODES.stream().sorted().toList(), addresses(seen.nodes().get()));
        assertTrue(seen.nodes().get().contains(seen.controller().get()));
        assertEquals(22, seen.clusterId().get().length());
        assertEquals(7, seen.authorizedOperations().get().size());
    }

    /** A client that knows one node only creates and deletes all the same (K4-5). */
    @Test
    void worksFromEveryNode() throws Exception {
        for (String address : NODES) {
            String name = topic + "-" + address.replace(":", "-");
            try (Admin one = connect(address)) {
                one.createTopics(Set.of(new NewTopic(name, 1, (short) 3))).all().get();
                until(() -> one.listTopics().names().get(), names -> names.contains(name));
                one.deleteTopics(Set.of(name)).all().get();
                until(() -> one.listTopics().names().get(), names -> !names.contains(name));
            }
        }
    }

    /** There are no groups, and every node says so. */
    @Test
    void listsNoGroups() throws Exception {
        assertEquals(List.of(), List.copyOf(admin.listConsumerGroups().all().get()));
    }

    /** No replicas are being moved, also of a topic that does not exist. */
    @Test
    void listsNoReassignments() throws Exception {
        assertEquals(Map.of(), admin.listPartitionReassignments().reassignments().get());
        Set<TopicPartition> unknown = Set.of(new TopicPartition(topic, 0));
        assertEquals(Map.of(), admin.listPartitionReassignments(unknown).reassignments().get());
    }
}
