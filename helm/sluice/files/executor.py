"""Starts a Spark executor from the PySpark of an image that has no entrypoint of Spark's own."""

import os
from pathlib import Path

import pyspark

env = os.environ
memory = env["SPARK_EXECUTOR_MEMORY"]
options = [name for name in env if name.startswith("SPARK_JAVA_OPT_")]
jars = [str(Path(pyspark.__file__).parent / "jars" / "*"), env.get("SPARK_CLASSPATH", "")]
told = {
    "--driver-url": env["SPARK_DRIVER_URL"],
    "--executor-id": env["SPARK_EXECUTOR_ID"],
    "--cores": env["SPARK_EXECUTOR_CORES"],
    "--app-id": env["SPARK_APPLICATION_ID"],
    "--hostname": env["SPARK_EXECUTOR_POD_IP"],
    "--resourceProfileId": env["SPARK_RESOURCE_PROFILE_ID"],
    "--podName": env["SPARK_EXECUTOR_POD_NAME"],
}
command = [
    "java",
    *(env[name] for name in sorted(options, key=lambda name: int(name.rpartition("_")[2]))),
    f"-Xms{memory}",
    f"-Xmx{memory}",
    "-cp",
    ":".join(filter(None, jars)),
    "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend",
    *(part for pair in told.items() for part in pair),
]
os.execvp(command[0], command)  # noqa: S606 -- this process is to become the executor
