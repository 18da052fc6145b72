import java.nio.ByteBuffer;
import java.util.TreeSet;
import org.apache.datasketches.common.Family;
import org.apache.datasketches.memory.Memory;
import org.apache.datasketches.theta.CompactSketch;
import org.apache.datasketches.theta.HashIterator;
import org.apache.datasketches.theta.Sketch;
import org.apache.datasketches.theta.UpdateSketch;
import org.apache.iceberg.Files;
import org.apache.iceberg.puffin.BlobMetadata;
import org.apache.iceberg.puffin.Puffin;
import org.apache.iceberg.puffin.PuffinReader;
import org.apache.iceberg.relocated.com.google.common.collect.ImmutableList;
import org.apache.iceberg.types.Conversions;
import org.apache.iceberg.types.Types;
import org.apache.iceberg.util.ByteBuffers;

/**
 * Prints the theta blobs of a Puffin file: field, property ndv, estimate, and whether the hashes are those of a sketch that is made here as
 * the Puffin specification says, of the longs below n (field 1) and of the texts "v0" to "v(n-1)" (field 2).
 */
public class Theta {
  public static void main(String[] args) throws Exception {
    int n = Integer.parseInt(args[1]);
    UpdateSketch longs = UpdateSketch.builder().setFamily(Family.ALPHA).build();
    UpdateSketch texts = UpdateSketch.builder().setFamily(Family.ALPHA).build();
    for (int i = 0; i < n; i++) {
      longs.update(Conversions.toByteBuffer(Types.LongType.get(), (long) i));
      texts.update(ByteBuffers.toByteArray(Conversions.toByteBuffer(Types.StringType.get(), "v" + i)));
    }
    try (PuffinReader reader = Puffin.read(Files.localInput(args[0])).build()) {
      for (BlobMetadata b : reader.fileMetadata().blobs()) {
        if (!b.type().equals("apache-datasketches-theta-v1")) {
          continue;
        }
        ByteBuffer payload = reader.readAll(ImmutableList.of(b)).iterator().next().second();
        Sketch ours = CompactSketch.wrap(Memory.wrap(ByteBuffers.toByteArray(payload)));
        Sketch theirs = b.inputFields().get(0) == 1 ? longs : texts;
        System.out.println(b.inputFields().get(0) + " " + b.properties().get("ndv") + " " + Math.round(ours.getEstimate()) + " " + common(ours, theirs));
      }
    }
  }

  /** Whether the sketches hold the same hashes below the smaller theta. */
  static boolean common(Sketch a, Sketch b) {
    long theta = Math.min(a.getThetaLong(), b.getThetaLong());
    return below(a, theta).equals(below(b, theta));
  }

  static TreeSet<Long> below(Sketch s, long theta) {
    TreeSet<Long> out = new TreeSet<>();
    for (HashIterator it = s.iterator(); it.next(); ) {
      if (it.get() < theta) {
        out.add(it.get());
      }
    }
    return out;
  }
}
