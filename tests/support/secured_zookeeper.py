"""A ZooKeeper server that speaks TLS at a port of its own and lets users log in by SASL."""

from pathlib import Path

from tests.support.certificates import Authority
from tests.support.ports import free_port
from tests.support.zookeeper import ZooKeeperServer

USER, PASSWORD = "kafka", 'k"afka\\secret'  # characters that JAAS and DIGEST-MD5 escape
OTHER_USER, OTHER_PASSWORD = "jürgen", "pässwörd"

JAAS = f"""Server {{
    org.apache.zookeeper.server.auth.DigestLoginModule required
    user_{USER}="k\\"afka\\\\secret"
    user_{OTHER_USER}="{OTHER_PASSWORD}";
}};
"""


class SecuredZooKeeper(ZooKeeperServer):
    """`connect` is without TLS, `secure_connect` with it. The server's certificate is localhost's;
    its clients need one of the same authority if `wants_certificates`.
    """

    def __init__(self, directory: Path, *, wants_certificates: bool = True) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.authority = Authority(directory)
        self.secure_port = free_port()
        keystore = self.authority.issue("server", "localhost")
        self.jaas = directory / "jaas.conf"
        self.jaas.write_text(JAAS)
        super().__init__(
            directory,
            extra=[
                "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
                f"secureClientPort={self.secure_port}",
                f"ssl.keyStore.location={keystore}",
                "ssl.keyStore.type=PEM",
                f"ssl.trustStore.location={self.authority.file}",
                "ssl.trustStore.type=PEM",
                "ssl.enabledProtocols=TLSv1.2,TLSv1.3",
                f"ssl.clientAuth={'need' if wants_certificates else 'none'}",
                "authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
                "authProvider.x509=org.apache.zookeeper.server.auth.X509AuthenticationProvider",
            ],
            options=[
                f"-Djava.security.auth.login.config={self.jaas}",
                "-Dfile.encoding=UTF-8",
            ],
        )

    @property
    def secure_connect(self) -> str:
        return f"localhost:{self.secure_port}"
