"""A real HDFS in one process, with a NameNode and a DataNode: Hadoop's own mini cluster.

Its jars come from Maven Central into a cache outside the repository, once.
"""

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from tests.support.maven import CACHE, kept
from tests.support.ports import free_port
from tests.support.waiting import until

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>minicontroller</groupId><artifactId>hdfs</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.hadoop</groupId><artifactId>hadoop-client-minicluster</artifactId><version>3.4.1</version></dependency>
    <dependency><groupId>org.apache.hadoop</groupId><artifactId>hadoop-client-api</artifactId><version>3.4.1</version></dependency>
    <dependency><groupId>org.apache.hadoop</groupId><artifactId>hadoop-client-runtime</artifactId><version>3.4.1</version></dependency>
    <dependency><groupId>junit</groupId><artifactId>junit</artifactId><version>4.13.2</version></dependency>
    <dependency><groupId>org.mockito</groupId><artifactId>mockito-core</artifactId><version>4.11.0</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>1.7.36</version></dependency>
  </dependencies>
</project>
"""
"""What the mini cluster's own jar names only in prose stands here, too."""


def hdfs_libs() -> Path:
    """Return the folder of the jars; fetched by Maven when it is not there."""
    libs = CACHE / f"hdfs-{sha256(POM.encode()).hexdigest()[:16]}" / "libs"
    with tempfile.NamedTemporaryFile("w", suffix=".xml") as pom:
        pom.write(POM)
        pom.flush()
        return kept(libs, Path(pom.name), "dependency:copy-dependencies", "-DoutputDirectory={}")


@contextmanager
def running_hdfs(folder: Path) -> Iterator[str]:
    """Start it in a folder, and give the address of its root."""
    port, ready = free_port(), folder / "configuration.xml"
    manager = "org.apache.hadoop.mapreduce.MiniHadoopClusterManager"
    command = [
        *("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m"),
        *(f"-Dtest.build.data={folder / 'data'}", "-cp", f"{hdfs_libs()}/*", manager),
        *("-nomr", "-format", "-datanodes", "1", "-nnport", str(port), "-writeConfig", str(ready)),
    ]
    with (folder / "hdfs.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
    try:
        until(lambda: process.poll() is not None or ready.exists())
        assert process.poll() is None, (folder / "hdfs.log").read_text()[-4000:]
        yield f"hdfs://localhost:{port}/"
    finally:
        process.kill()
        process.wait()
