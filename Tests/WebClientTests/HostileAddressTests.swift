import PodcastModel
import TestSupport
import Testing

@testable import WebClient

/// Tests hostile addresses, all of which are redirected to a local server.
@Suite(.timeLimit(.minutes(5))) struct HostileAddressTests {
    private static let addresses = HostileAddresses.addresses(10_000, seed: 12)

    private func fetching(
        _ body: @Sendable (HTTPTestServer, WebClient) async throws -> Void
    ) async throws {
        try await HTTPTestServer.with { server in
            var options = WebClientOptions()
            options.connectsTo = "127.0.0.1:\(server.port)"
            let client = WebClient(options)
            try await body(server, client)
            await client.shutdown()
        }
    }

    @Test func `a request to any hostile address at most fails`() async throws {
        try await fetching { server, client in
            var fetched = 0
            for text in Self.addresses {
                guard let address = WebAddress(text) else { continue }
                do throws(WebFailure) {
                    let status = try await client.send(WebRequest(address)).status
                    #expect(status == 404)
                    fetched += 1
                } catch {
                    // The local server doesn’t support TLS.
                    #expect(address.isFile || address.scheme == "https", "\(text.debugDescription): \(error)")
                }
            }
            #expect(fetched > 500)
            server.route("/end", HTTPTestResponse(body: .bytes([1])))
            let bytes = try await client.send(try request("http://any.example/end")).body.collect()
            #expect(bytes == [1])
        }
    }

    @Test func `a redirect to any hostile address at most fails the request`() async throws {
        try await fetching { server, client in
            let start = try request("http://start.example/start")
            for text in Self.addresses {
                // HTTP fields can’t contain these characters.
                let location = String(String.UnicodeScalarView(text.unicodeScalars.filter { $0.value >= 0x20 }))
                server.route("/start", .redirect(to: location), .status(404))
                do throws(WebFailure) {
                    let response = try await client.send(start)
                    #expect(response.status == 404, "\(location.debugDescription)")
                } catch {
                    #expect(
                        [.badRedirect, .tls, .badAnswer, .tooManyRedirects].contains(error.kind),
                        "\(location.debugDescription): \(error)")
                }
            }
            server.route("/start", HTTPTestResponse(body: .bytes([1])))
            let bytes = try await client.send(start).body.collect()
            #expect(bytes == [1])
        }
    }
}
