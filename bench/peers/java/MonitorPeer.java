import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedOutputStream;
import java.io.DataOutputStream;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.lucene.analysis.Analyzer;
import org.apache.lucene.analysis.LowerCaseFilter;
import org.apache.lucene.analysis.Tokenizer;
import org.apache.lucene.analysis.util.CharTokenizer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.LatLonPoint;
import org.apache.lucene.document.TextField;
import org.apache.lucene.index.Term;
import org.apache.lucene.monitor.Monitor;
import org.apache.lucene.monitor.MonitorConfiguration;
import org.apache.lucene.monitor.MonitorQuery;
import org.apache.lucene.monitor.MultiMatchingQueries;
import org.apache.lucene.monitor.QueryMatch;
import org.apache.lucene.monitor.TermFilteredPresearcher;
import org.apache.lucene.search.BooleanClause.Occur;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.TermQuery;

/**
 * Lucene Monitor on the benchmark's workload, as `bench.peers.monitor` starts it: subscriptions are
 * registered, then threads match the objects in batches, several times over. Says one line of JSON
 * and writes the pairs of the last time: places of subscription and object, four bytes each.
 */
final class MonitorPeer {
  private static final String TEXT = "text", PLACE = "place";

  /** Letters, numbers and the underscore in lower case: the same terms as all other engines see. */
  private static final class Words extends Analyzer {
    @Override
    protected TokenStreamComponents createComponents(String field) {
      Tokenizer words =
          CharTokenizer.fromTokenCharPredicate(
              c -> c == '_' || Character.isLetter(c) || isNumber(Character.getType(c)));
      return new TokenStreamComponents(words, new LowerCaseFilter(words));
    }

    private static boolean isNumber(int type) {
      return type == Character.DECIMAL_DIGIT_NUMBER
          || type == Character.LETTER_NUMBER
          || type == Character.OTHER_NUMBER;
    }
  }

  /** A line of id, west, south, east, north, operator and keywords. */
  private static Query query(String[] parts) {
    double west = Double.parseDouble(parts[1]), south = Double.parseDouble(parts[2]);
    double east = Double.parseDouble(parts[3]), north = Double.parseDouble(parts[4]);
    Occur occur = parts[5].equals("AND") ? Occur.MUST : Occur.SHOULD;
    BooleanQuery.Builder words = new BooleanQuery.Builder();
    for (String word : parts[6].split(" ")) {
      words.add(new TermQuery(new Term(TEXT, word)), occur);
    }
    return new BooleanQuery.Builder()
        .add(words.build(), Occur.MUST)
        .add(LatLonPoint.newBoxQuery(PLACE, south, north, west, east), Occur.FILTER)
        .build();
  }

  /** A line of id, lon, lat and text. */
  private static Document document(String line) {
    String[] parts = line.split("\t", -1);
    Document made = new Document();
    double lon = Double.parseDouble(parts[1]), lat = Double.parseDouble(parts[2]);
    made.add(new TextField(TEXT, parts[3], Field.Store.NO));
    made.add(new LatLonPoint(PLACE, lat, lon));
    return made;
  }

  private static int[] match(Monitor monitor, List<String> lines, int from, int to)
      throws Exception {
    Document[] batch = new Document[to - from];
    for (int n = 0; n < batch.length; n++) {
      batch[n] = document(lines.get(from + n));
    }
    MultiMatchingQueries<QueryMatch> found = monitor.match(batch, QueryMatch.SIMPLE_MATCHER);
    int[] pairs = new int[16];
    int used = 0;
    for (int n = 0; n < batch.length; n++) {
      for (QueryMatch one : found.getMatches(n)) {
        if (used == pairs.length) {
          pairs = java.util.Arrays.copyOf(pairs, 2 * used);
        }
        pairs[used++] = Integer.parseInt(one.getQueryId());
        pairs[used++] = from + n;
      }
    }
    return java.util.Arrays.copyOf(pairs, used);
  }

  /** Nanoseconds of this process on processors. */
  private static long processors() {
    return ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean())
        .getProcessCpuTime();
  }

  public static void main(String[] arguments) throws Exception {
    List<String> subscriptions = Files.readAllLines(Path.of(arguments[0]));
    List<String> objects = Files.readAllLines(Path.of(arguments[1]));
    Path out = Path.of(arguments[2]);
    int size = Integer.parseInt(arguments[3]);
    int threads = Integer.parseInt(arguments[4]);
    int repeats = Integer.parseInt(arguments[5]);
    MonitorConfiguration settings = new MonitorConfiguration();
    ExecutorService pool = Executors.newFixedThreadPool(threads);
    try (Monitor monitor = new Monitor(new Words(), new TermFilteredPresearcher(), settings)) {
      long start = System.nanoTime();
      List<MonitorQuery> some = new ArrayList<>();
      for (int n = 0; n < subscriptions.size(); n++) {
        some.add(new MonitorQuery(Integer.toString(n), query(subscriptions.get(n).split("\t"))));
        if (some.size() == 5_000 || n == subscriptions.size() - 1) {
          monitor.register(some);
          some.clear();
        }
      }
      double prepared = (System.nanoTime() - start) / 1e9;
      List<Double> seconds = new ArrayList<>(), processor = new ArrayList<>();
      List<int[]> found = new ArrayList<>();
      for (int pass = 0; pass < repeats; pass++) {
        found.clear();
        start = System.nanoTime();
        long used = processors();
        AtomicInteger next = new AtomicInteger();
        List<Callable<List<int[]>>> tasks = new ArrayList<>();
        for (int thread = 0; thread < threads; thread++) {
          tasks.add(
              () -> {
                List<int[]> mine = new ArrayList<>();
                for (int at; (at = next.getAndAdd(size)) < objects.size(); ) {
                  mine.add(match(monitor, objects, at, Math.min(at + size, objects.size())));
                }
                return mine;
              });
        }
        for (Future<List<int[]>> done : pool.invokeAll(tasks)) {
          found.addAll(done.get());
        }
        seconds.add((System.nanoTime() - start) / 1e9);
        processor.add((processors() - used) / 1e9);
      }
      long pairs = 0;
      try (DataOutputStream file =
          new DataOutputStream(new BufferedOutputStream(Files.newOutputStream(out)))) {
        for (int[] some_pairs : found) {
          pairs += some_pairs.length / 2;
          for (int number : some_pairs) {
            file.writeInt(number);
          }
        }
      }
      System.out.printf(
          "{\"prepare\":%s,\"seconds\":%s,\"processor\":%s,\"matches\":%d}%n",
          prepared, seconds, processor, pairs);
    } finally {
      pool.shutdown();
    }
  }
}
