from __future__ import annotations

import json
import subprocess
import sys

from helm.values import CHART

# As Spark 4.2 gives them to the pod of an executor.
ENVIRONMENT = {
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@10.0.0.7:7078",
    "SPARK_EXECUTOR_ID": "1",
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_EXECUTOR_MEMORY": "4096m",
    "SPARK_APPLICATION_ID": "spark-1",
    "SPARK_EXECUTOR_POD_IP": "10.0.0.8",
    "SPARK_EXECUTOR_POD_NAME": "usage-exec-1",
    "SPARK_RESOURCE_PROFILE_ID": "0",
    **{f"SPARK_JAVA_OPT_{number}": f"-Doption={number} of many" for number in range(11)},
}


def test_an_executor_is_started_with_all_that_spark_tells_its_pod(tmp_path):
    (tmp_path / "pyspark").mkdir()
    (tmp_path / "pyspark" / "__init__.py").write_text("")
    java = tmp_path / "java"
    java.write_text(f"#!{sys.executable}\nimport json, sys\nprint(json.dumps(sys.argv[1:]))\n")
    java.chmod(0o755)
    env = {"PATH": str(tmp_path), "PYTHONPATH": str(tmp_path), **ENVIRONMENT}
    # Spark adds the last argument, for an entrypoint of its own.
    command = [sys.executable, str(CHART / "files" / "executor.py"), "executor"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    arguments = json.loads(done.stdout)

    assert arguments[:11] == [f"-Doption={number} of many" for number in range(11)]
    assert arguments[11:15] == ["-Xms4096m", "-Xmx4096m", "-cp", str(tmp_path / "pyspark" / "jars" / "*")]
    assert arguments[15] == "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
    told = dict(zip(arguments[16::2], arguments[17::2], strict=True))
    assert told == {
        "--driver-url": ENVIRONMENT["SPARK_DRIVER_URL"],
        "--executor-id": "1",
        "--cores": "2",
        "--app-id": "spark-1",
        "--hostname": "10.0.0.8",
        "--resourceProfileId": "0",
        "--podName": "usage-exec-1",
    }
