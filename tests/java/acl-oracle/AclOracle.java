import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import kafka.security.authorizer.AclAuthorizer;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.SecurityUtils;
import org.apache.kafka.security.authorizer.AclEntry;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Kafka's own AclAuthorizer behind a pipe, without a ZooKeeper: it is told ACLs and asked for
 * decisions, one a line, with tabs between the words.
 */
public final class AclOracle {
    private static AclAuthorizer authorizer = new AclAuthorizer();
    private static final Map<ResourcePattern, Set<AclEntry>> ACLS = new HashMap<>();
    private static int version = 0;

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split("\t", -1);
            switch (words[0]) {
                case "new" -> begin(words[1].equals("true"));
                case "acl" -> add(words);
                case "ask" -> out.println(decide(words));
                default -> throw new IllegalArgumentException(line);
            }
        }
        out.flush();
    }

    private static void begin(boolean everyone) throws Exception {
        ACLS.clear();
        authorizer = new AclAuthorizer();
        for (var method : AclAuthorizer.class.getDeclaredMethods()) {
            if (method.getName().endsWith("shouldAllowEveryoneIfNoAclIsFound_$eq")) {
                method.setAccessible(true);
                method.invoke(authorizer, everyone);
            }
        }
    }

    private static void add(String[] words) throws Exception {
        ResourcePattern pattern = new ResourcePattern(
            ResourceType.fromCode(Byte.parseByte(words[1])), words[2], PatternType.fromCode(Byte.parseByte(words[3])));
        AccessControlEntry entry = new AccessControlEntry(
            words[4], words[5], AclOperation.fromCode(Byte.parseByte(words[6])),
            AclPermissionType.fromCode(Byte.parseByte(words[7])));
        Set<AclEntry> entries = ACLS.computeIfAbsent(pattern, any -> new HashSet<>());
        entries.add(new AclEntry(entry));
        scala.collection.immutable.Set<AclEntry> all = CollectionConverters.asScala(entries).toSet();
        authorizer.updateCache(pattern, new AclAuthorizer.VersionedAcls(all, ++version));
    }

    private static boolean decide(String[] words) throws Exception {
        ResourcePattern resource =
            new ResourcePattern(ResourceType.fromCode(Byte.parseByte(words[4])), words[5], PatternType.LITERAL);
        Action action = new Action(AclOperation.fromCode(Byte.parseByte(words[3])), resource, 1, false, false);
        return authorizer.authorize(new Caller(words[1], words[2]), List.of(action)).get(0)
            == AuthorizationResult.ALLOWED;
    }

    private record Caller(String name, String host) implements AuthorizableRequestContext {
        public String listenerName() {
            return "TEST";
        }

        public SecurityProtocol securityProtocol() {
            return SecurityProtocol.PLAINTEXT;
        }

        public KafkaPrincipal principal() {
            return SecurityUtils.parseKafkaPrincipal(name);
        }

        public InetAddress clientAddress() {
            try {
                return InetAddress.getByName(host);
            } catch (java.net.UnknownHostException impossible) {
                throw new IllegalStateException(impossible);
            }
        }

        public int requestType() {
            return 3;
        }

        public int requestVersion() {
            return 0;
        }

        public String clientId() {
            return "test";
        }

        public int correlationId() {
            return 0;
        }
    }
}
