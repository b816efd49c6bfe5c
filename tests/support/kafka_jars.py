"""The jars of a Kafka broker and of Spark's Kafka connector, for the tests: `make kafka`.

They are resolved by Maven coordinates, with `mvn` where it is, else with the Ivy that comes with
PySpark, into `.cache/kafka` or where PLACEWIRE_KAFKA_JARS says. Without a way to Maven's
repository this says so in one line and succeeds: tests of Kafka are skipped then.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pyspark

from checkout import ROOT
from placewire.model.errors import Unusable
from placewire.spark.session import find_java

SECONDS = 240  # for a resolver that gets no answer
BROKER = ("org.apache.kafka:kafka_2.13:4.3.1", "org.slf4j:slf4j-simple:1.7.36")
# One by one, without what they depend on: Spark has the rest already. See docs/decisions/0013.
CONNECTOR = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.13.1",
)
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion>
<groupId>placewire</groupId><artifactId>jars</artifactId><version>1</version>
<packaging>pom</packaging>
<dependencies>{}</dependencies>
</project>
"""
DEPENDENCY = """
<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>{}</dependency>"""
ALONE = """<exclusions><exclusion>
<groupId>*</groupId><artifactId>*</artifactId>
</exclusion></exclusions>"""


def cache_folder() -> Path:
    given = os.environ.get("PLACEWIRE_KAFKA_JARS")
    return Path(given) if given else ROOT / ".cache" / "kafka"


def find_jars(part: str) -> list[Path]:
    """The jars of the `broker` or the `connector`; none if they were not resolved."""
    return sorted((cache_folder() / part).glob("*.jar")) if is_resolved() else []


def is_resolved() -> bool:
    stamp = cache_folder() / "resolved.txt"
    return stamp.exists() and stamp.read_text() == "\n".join((*BROKER, *CONNECTOR))


def with_maven(coordinates: tuple[str, ...], alone: bool, folder: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise Unusable("mvn is not on the path")
    with tempfile.TemporaryDirectory() as scratch:
        dependencies = (
            DEPENDENCY.format(*one.split(":"), ALONE if alone else "") for one in coordinates
        )
        (Path(scratch) / "pom.xml").write_text(POM.format("".join(dependencies)))
        run(
            [
                *(maven, "--batch-mode", "--quiet", "dependency:copy-dependencies"),
                *("-DincludeScope=runtime", f"-DoutputDirectory={folder}"),
                # A repository of its own: Maven leaves descriptions without jars behind, and
                # Spark's Ivy takes the user's repository for whole.
                f"-Dmaven.repo.local={cache_folder() / 'repository'}",
            ],
            scratch,
        )


def with_ivy(coordinates: tuple[str, ...], alone: bool, folder: Path) -> None:
    ivy = next((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"), None)
    if ivy is None:
        raise Unusable("this PySpark has no Ivy")
    java = str(find_java().home / "bin" / "java")
    with tempfile.TemporaryDirectory() as scratch:
        for one in coordinates:
            run(
                [
                    *(java, "-jar", str(ivy), "-cache", scratch, "-confs", "default"),
                    *(["-notransitive"] if alone else []),
                    *("-dependency", *one.split(":")),
                    *("-retrieve", f"{folder}/[artifact]-[revision].[ext]"),
                ],
                scratch,
            )
    if not any(folder.glob("*.jar")):
        raise Unusable("Ivy found nothing")


def run(command: list[str], folder: str) -> None:
    try:
        subprocess.run(
            command, cwd=folder, check=True, timeout=SECONDS, capture_output=True, text=True
        )
    except subprocess.CalledProcessError as error:
        lines = (error.stdout + error.stderr).splitlines()
        said = [line for line in lines if "ERROR" in line or "not found" in line]
        raise Unusable(said[0].strip()[:150] if said else f"{command[0]} failed") from None
    except (subprocess.TimeoutExpired, OSError) as error:
        raise Unusable(str(error)) from None


def resolve(resolver: Callable[[tuple[str, ...], bool, Path], None]) -> None:
    """All jars into the cache, whole or not at all."""
    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        for part, coordinates, alone in (
            ("broker", BROKER, False),
            ("connector", CONNECTOR, True),
        ):
            made = Path(scratch) / part
            made.mkdir()
            resolver(coordinates, alone, made)
            shutil.rmtree(cache / part, ignore_errors=True)
            made.rename(cache / part)
    shutil.rmtree(cache / "repository", ignore_errors=True)
    (cache / "resolved.txt").write_text("\n".join((*BROKER, *CONNECTOR)))


def main() -> int:
    if is_resolved():
        return 0
    print("Resolving the jars of Kafka (once)")
    reasons = []
    for resolver in (with_maven, with_ivy):
        try:
            resolve(resolver)
        except Unusable as error:
            reasons.append(str(error))
        else:
            return 0
    print(f"Kafka's jars could not be resolved, its tests are skipped: {'; '.join(reasons)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
