import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.CreateDelegationTokenOptions;
import org.apache.kafka.common.security.auth.KafkaPrincipal;

/** Creates two delegation tokens: arguments are an address and a JAAS configuration. */
class Tokens {
    public static void main(String[] arguments) throws Exception {
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", arguments[0],
            "security.protocol", "SASL_PLAINTEXT",
            "sasl.mechanism", "PLAIN",
            "sasl.jaas.config", arguments[1]);
        KafkaPrincipal owner = new KafkaPrincipal("User", "b/\u00fc ~");
        KafkaPrincipal renewer = new KafkaPrincipal("User", "x*");
        try (Admin admin = Admin.create(settings)) {
            admin.createDelegationToken().delegationToken().get();
            CreateDelegationTokenOptions options = new CreateDelegationTokenOptions();
            options.owner(owner).renewers(List.of(renewer, owner)).maxlifeTimeMs(3_600_000);
            admin.createDelegationToken(options).delegationToken().get();
        }
    }
}
