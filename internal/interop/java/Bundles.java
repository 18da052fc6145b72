import java.security.MessageDigest;
import java.util.HexFormat;
import org.apache.iceberg.Files;
import org.apache.iceberg.puffin.BlobMetadata;
import org.apache.iceberg.puffin.Puffin;
import org.apache.iceberg.puffin.PuffinReader;
import org.apache.iceberg.relocated.com.google.common.collect.ImmutableList;
import org.apache.iceberg.util.ByteBuffers;

/** Prints what Iceberg's Puffin reader finds in the files named as arguments, one blob a line. */
public class Bundles {
  public static void main(String[] args) throws Exception {
    for (String path : args) {
      try (PuffinReader reader = Puffin.read(Files.localInput(path)).build()) {
        for (BlobMetadata b : reader.fileMetadata().blobs()) {
          byte[] payload = ByteBuffers.toByteArray(reader.readAll(ImmutableList.of(b)).iterator().next().second());
          String hash = HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(payload));
          System.out.println(b.type() + " " + b.inputFields() + " " + b.snapshotId() + " " + b.sequenceNumber() + " " + b.offset() + " " + b.length() + " " + hash);
        }
      }
    }
  }
}
