import io.delta.kernel.*;
import io.delta.kernel.data.*;
import io.delta.kernel.defaults.engine.DefaultEngine;
import io.delta.kernel.engine.*;
import io.delta.kernel.internal.InternalScanFileUtils;
import io.delta.kernel.internal.data.ScanStateRow;
import io.delta.kernel.internal.util.Utils;
import io.delta.kernel.types.StructType;
import io.delta.kernel.utils.*;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.apache.hadoop.conf.Configuration;

/**
 * Reads a table as the protocol's Delta Kernel example does: vended keys in a Hadoop configuration, and no more.
 *
 * <p>Takes the table's location and a file with the three keys, one on each line. Prints the version and the
 * number of rows.
 */
public final class ReadTable {
  public static void main(String[] arguments) throws IOException {
    String myTablePath = arguments[0];
    List<String> keys = Files.readAllLines(Path.of(arguments[1]));

    Configuration hadoopConf = new Configuration();
    hadoopConf.set(
        "fs.s3a.aws.credentials.provider", "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider");
    hadoopConf.set("fs.s3a.access.key", keys.get(0));
    hadoopConf.set("fs.s3a.secret.key", keys.get(1));
    hadoopConf.set("fs.s3a.session.token", keys.get(2));
    Engine myEngine = DefaultEngine.create(hadoopConf);
    Table myTable = Table.forPath(myEngine, myTablePath);

    Snapshot snapshot = myTable.getLatestSnapshot(myEngine);
    System.out.println("version " + snapshot.getVersion());
    System.out.println("rows " + countRows(myEngine, snapshot));
  }

  private static long countRows(Engine engine, Snapshot snapshot) throws IOException {
    Scan scan = snapshot.getScanBuilder().build();
    Row state = scan.getScanState(engine);
    long rows = 0;
    try (CloseableIterator<FilteredColumnarBatch> batches = scan.getScanFiles(engine)) {
      while (batches.hasNext()) {
        try (CloseableIterator<Row> files = batches.next().getRows()) {
          while (files.hasNext()) {
            rows += countRows(engine, state, files.next());
          }
        }
      }
    }
    return rows;
  }

  private static long countRows(Engine engine, Row state, Row file) throws IOException {
    StructType schema = ScanStateRow.getPhysicalDataReadSchema(state);
    FileStatus status = InternalScanFileUtils.getAddFileStatus(file);
    CloseableIterator<ColumnarBatch> data =
        engine
            .getParquetHandler()
            .readParquetFiles(Utils.singletonCloseableIterator(status), schema, Optional.empty())
            .map(FileReadResult::getData);
    long rows = 0;
    try (CloseableIterator<FilteredColumnarBatch> logical =
        Scan.transformPhysicalData(engine, state, file, data)) {
      while (logical.hasNext()) {
        try (CloseableIterator<Row> found = logical.next().getRows()) {
          while (found.hasNext()) {
            found.next();
            rows++;
          }
        }
      }
    }
    return rows;
  }
}
