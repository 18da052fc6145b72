import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpFilter;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletRequestWrapper;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.EnumSet;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.hadoop.HadoopCatalog;
import org.apache.iceberg.rest.RESTCatalogAdapter;
import org.apache.iceberg.rest.RESTCatalogServlet;
import org.eclipse.jetty.ee10.servlet.FilterHolder;
import org.eclipse.jetty.ee10.servlet.ServletContextHandler;
import org.eclipse.jetty.ee10.servlet.ServletHolder;
import org.eclipse.jetty.http.UriCompliance;
import org.eclipse.jetty.server.HttpConfiguration;
import org.eclipse.jetty.server.HttpConnectionFactory;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;

/**
 * Iceberg's own REST catalog server over a folder, which is its argument. It prints its port, and ends with its standard input. All
 * but the configuration and the tokens is below a prefix and needs a token, which the client named ada gets.
 */
public class RestCatalog {
  static final String PREFIX = "/warehouses/one";
  static final String CONFIG = "{\"defaults\":{\"prefix\":\"not/this/one\",\"view-endpoints-supported\":\"false\"},\"overrides\":{\"prefix\":\"warehouses/one\"}}";
  static final String DENIED = "{\"error\":{\"message\":\"Not authorized\",\"type\":\"NotAuthorizedException\",\"code\":401}}";

  public static void main(String[] args) throws Exception {
    RESTCatalogAdapter adapter = new RESTCatalogAdapter(new HadoopCatalog(new Configuration(), args[0]));
    ServletContextHandler context = new ServletContextHandler();
    context.addServlet(new ServletHolder(new RESTCatalogServlet(adapter)), "/*");
    context.addFilter(new FilterHolder(new Gate()), "/*", EnumSet.of(jakarta.servlet.DispatcherType.REQUEST));
    context.getServletHandler().setDecodeAmbiguousURIs(true);
    HttpConfiguration http = new HttpConfiguration();
    http.setUriCompliance(UriCompliance.UNSAFE); // namespaces of two levels have a control character between them
    Server server = new Server();
    ServerConnector connector = new ServerConnector(server, new HttpConnectionFactory(http));
    connector.setHost("127.0.0.1");
    server.addConnector(connector);
    server.setHandler(context);
    server.start();
    System.out.println(connector.getLocalPort());
    while (System.in.read() >= 0) {
      continue;
    }
    server.stop();
    System.exit(0);
  }

  static class Gate extends HttpFilter {
    @Override
    protected void doFilter(HttpServletRequest request, HttpServletResponse response, FilterChain chain) throws IOException, ServletException {
      String path = request.getRequestURI();
      String token = request.getHeader("Authorization");
      if (path.equals("/v1/config")) {
        reply(response, 200, CONFIG);
      } else if (path.equals("/v1/oauth/tokens")) {
        chain.doFilter(request, response);
      } else if (!path.startsWith("/v1" + PREFIX + "/")) {
        reply(response, 400, DENIED);
      } else if (token == null || !token.equals("Bearer client-credentials-token:sub=ada")) {
        reply(response, 401, DENIED);
      } else {
        chain.doFilter(new WithoutPrefix(request), response);
      }
    }

    static void reply(HttpServletResponse response, int status, String body) throws IOException {
      response.setStatus(status);
      response.setContentType("application/json");
      response.getWriter().write(body);
    }
  }

  static class WithoutPrefix extends HttpServletRequestWrapper {
    WithoutPrefix(HttpServletRequest request) {
      super(request);
    }

    @Override
    public String getRequestURI() {
      return super.getRequestURI().replaceFirst(PREFIX, "");
    }

    @Override
    public String getPathInfo() {
      return super.getPathInfo().replaceFirst(PREFIX, "");
    }
  }
}
