"""Settings by which Spark is quick with many small tables: planning and compiling is all there is to save."""

from __future__ import annotations

SMALL_TABLES = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.databricks.delta.writeChecksumFile.enabled": "false",
    "spark.databricks.delta.stateReconstructionValidation.enabled": "false",
    # Nobody looks at what was run: plans and figures of thousands of queries are not kept, nor written out.
    "spark.ui.liveUpdate.period": "-1",
    "spark.ui.retainedJobs": "1",
    "spark.ui.retainedStages": "1",
    "spark.ui.retainedTasks": "1",
    "spark.sql.ui.retainedExecutions": "1",
    "spark.sql.maxPlanStringLength": "100",
    # Without a checksum beside every file.
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
}
