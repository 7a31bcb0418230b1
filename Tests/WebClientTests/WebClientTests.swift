import NIOConcurrencyHelpers
import PodcastModel
import TestSupport
import Testing

@testable import WebClient

/// Runs `body` with a test server and a client, and stops both afterwards.
func fetching<Value: Sendable>(
    _ options: WebClientOptions = WebClientOptions(),
    _ body: @Sendable (HTTPTestServer, WebClient) async throws -> Value
) async throws -> Value {
    let client = WebClient(options)
    do {
        let value = try await HTTPTestServer.with { try await body($0, client) }
        await client.shutdown()
        return value
    } catch {
        await client.shutdown()
        throw error
    }
}

func request(_ url: String) throws -> WebRequest { WebRequest(try #require(WebAddress(url))) }

/// Returns the failure of a request, in its head or in its body; nil if it succeeds.
func failure(of client: WebClient, _ request: WebRequest) async -> WebFailure? {
    do throws(WebFailure) {
        let response = try await client.send(request)
        _ = try await response.body.collect()
        return nil
    } catch {
        return error
    }
}

@Suite(.timeLimit(.minutes(2))) struct WebClientTests {
    @Test func `a response has its status, its fields and the whole body`() async throws {
        try await fetching { server, client in
            let body = HTTPTestResponse.Body.repeated(Array("0123456789".utf8), total: 3_000_001)
            server.route("/a", HTTPTestResponse(headers: [("X-Thing", " a  b ")], body: body, etag: "\"v1\""))
            let response = try await client.send(try request(server.url("/a?b=c")))
            #expect(response.status == 200 && response.headers["x-thing"] == "a  b")
            #expect(response.headers["ETAG"] == "\"v1\"" && response.isDelimited && response.redirects.isEmpty)
            let bytes = try await response.body.collect()
            #expect(bytes.count == 3_000_001 && bytes.last == UInt8(ascii: "0"))
            #expect(server.requests(for: "/a").first?.query == "b=c")
            #expect(server.requests(for: "/a").first?.header("User-Agent") == WebClient.userAgent)
        }
    }

    @Test func `a chunked body and one that ends with the connection are read completely`() async throws {
        try await fetching { server, client in
            server.route("/a", HTTPTestResponse(body: .repeated([7], total: 100_000), announcesLength: false))
            var last = HTTPTestResponse(body: .repeated([7], total: 100_000))
            last.endsWithConnection = true
            server.route("/b", last)
            for (path, isDelimited) in [("/a", true), ("/b", false)] {
                let response = try await client.send(try request(server.url(path)))
                #expect(response.isDelimited == isDelimited, "\(path)")
                #expect(try await response.body.collect().count == 100_000, "\(path)")
            }
        }
    }

    @Test func `a range request names the version of the file to which the range belongs`() async throws {
        try await fetching { server, client in
            let body = HTTPTestResponse.Body.bytes(Array("0123456789".utf8))
            server.route("/a", HTTPTestResponse(body: body, etag: "\"v1\"", acceptsRanges: true))
            var wanted = try request(server.url("/a"))
            wanted.decompresses = false
            wanted.range = WebRange(from: 4, ifRange: "\"v1\"")
            let part = try await client.send(wanted)
            #expect(part.status == 206 && part.headers["Content-Range"] == "bytes 4-9/10")
            #expect(try await part.body.collect() == Array("456789".utf8))
            wanted.range = WebRange(from: 4, to: 5, ifRange: "\"v0\"")
            #expect(try await client.send(wanted).status == 200)
            let seen = server.requests(for: "/a")
            #expect(seen.first?.header("Range") == "bytes=4-" && seen.last?.header("Range") == "bytes=4-5")
            #expect(seen.first?.header("Accept-Encoding") == "identity")
        }
    }

    @Test func `redirects are followed and listed in the response`() async throws {
        try await fetching { server, client in
            server.route("/a", .redirect(to: "/b", status: 301))
            server.route("/b", .redirect(to: server.url("/c d"), status: 307))
            server.route("/c%20d", HTTPTestResponse(body: .bytes([1])))
            let response = try await client.send(try request(server.url("/a")))
            #expect(response.address.text == server.url("/c%20d"))
            #expect(response.redirects.map(\.status) == [301, 307])
            #expect(response.redirects.map(\.isPermanent) == [true, false])
            #expect(response.redirects.map(\.target.text) == [server.url("/b"), server.url("/c%20d")])
            #expect(try await response.body.collect() == [1])
        }
    }

    @Test(arguments: [
        "http://]/x", "http://[::", "file:///etc/passwd", "gopher://127.0.0.1/", "dict://127.0.0.1/", "//]",
        "http://a b/",
        "http://%00/", "javascript:alert(1)", "",
    ])
    func `a redirect to anything but a web address is refused`(target: String) async throws {
        try await fetching { server, client in
            server.route("/a", .redirect(to: target))
            let failure = await failure(of: client, try request(server.url("/a")))
            #expect(failure?.kind == .badRedirect && failure?.retry == false, "\(target)")
            #expect(server.requests.count == 1)
        }
    }

    @Test func `a redirect loop is refused`() async throws {
        try await fetching { server, client in
            server.route("/a", .redirect(to: "/b"))
            server.route("/b", .redirect(to: "/a"))
            let failure = await failure(of: client, try request(server.url("/a")))
            #expect(failure?.kind == .tooManyRedirects && failure?.retry == false)
            #expect(server.requests.count == 11)
        }
    }

    @Test func `the body of a redirect is bounded`() async throws {
        try await fetching { server, client in
            var endless = HTTPTestResponse.redirect(to: "/b")
            endless.body = .repeated([7], total: 500_000_000)
            server.route("/a", endless)
            server.route("/b", HTTPTestResponse(body: .bytes([1])))
            let bytes = try await client.send(try request(server.url("/a"))).body.collect()
            #expect(bytes == [1])
        }
    }

    @Test func `credentials are sent to their origin only`() async throws {
        try await fetching { server, client in
            try await HTTPTestServer.with { other in
                server.route("/a", .redirect(to: other.url("/b")))
                other.route("/b", .redirect(to: server.url("/c")))
                server.route("/c", HTTPTestResponse(body: .bytes([1])))
                var wanted = try request(server.url("/a"))
                let origin = try #require(wanted.address.origin)
                wanted.credentials = [origin: WebCredentials(user: "me", password: "pass:wörd")]
                _ = try await client.send(wanted).body.collect()
                let basic = "Basic bWU6cGFzczp3w7ZyZA=="
                #expect(server.requests.map { $0.header("Authorization") } == [basic, basic])
                #expect(other.requests.map { $0.header("Authorization") } == [nil])
            }
        }
    }

    @Test func `the user and password of an address are decoded and omitted from the request line`() async throws {
        try await fetching { server, client in
            server.route("/a", HTTPTestResponse(body: .bytes([1])))
            let url = server.url("/a").replacing("http://", with: "http://me%40mail.org:p%3Ass@")
            _ = try await client.send(try request(url)).body.collect()
            let seen = server.requests.map { $0.header("Authorization") }
            #expect(seen == ["Basic bWVAbWFpbC5vcmc6cDpzcw=="])
            #expect(server.requests.allSatisfy { $0.header("Host")?.contains("@") == false })
        }
    }

    @Test func `the user and password of an address are sent to its origin only, even after redirects`() async throws {
        try await fetching { server, client in
            try await HTTPTestServer.with { other in
                server.route("/a", .redirect(to: server.url("/b")))
                server.route("/b", .redirect(to: "/c"))
                server.route("/c", .redirect(to: other.url("/d")))
                other.route("/d", .redirect(to: "/e"))
                other.route("/e", .redirect(to: server.url("/f")))
                server.route("/f", HTTPTestResponse(body: .bytes([1])))
                let url = server.url("/a").replacing("http://", with: "http://me:pass@")
                _ = try await client.send(try request(url)).body.collect()
                let basic = "Basic bWU6cGFzcw=="
                #expect(server.requests.map { $0.header("Authorization") } == [basic, basic, basic, basic])
                #expect(other.requests.map { $0.header("Authorization") } == [nil, nil])
            }
        }
    }

    @Test(arguments: [
        ("http://127.0.0.1:80/", true), ("https://127.8.9.10:8443/x", true), ("http://LocalHost/", true),
        ("http://me:pass@localhost:8080/", true), ("http://feeds.localhost/", true), ("http://[::1]:8000/", true),
        ("http://128.0.0.1/", false), ("http://127.example.com/", false), ("http://127.0.0.example/", false),
        ("http://localhost.example.com/", false), ("http://[::2]/", false), ("file:///x", false),
    ])
    func `loopback addresses and names are detected`(text: String, isLoopback: Bool) throws {
        #expect(try #require(WebAddress(text)).isLoopback == isLoopback)
    }

    @Test func `a proxy is used for other hosts and never for this one`() async throws {
        try await HTTPTestServer.with { proxy in
            proxy.route("/a", HTTPTestResponse(body: .bytes([1])))
            proxy.route("http://a.example/a", HTTPTestResponse(body: .bytes([1])))
            var options = WebClientOptions()
            options.proxy = proxy.url("")
            try await fetching(options) { server, client in
                server.route("/a", HTTPTestResponse(body: .bytes([2])))
                let hosts = ["127.0.0.1", "localhost"]
                for host in hosts {
                    let url = server.url("/a").replacing("127.0.0.1", with: host)
                    #expect(try await client.send(try request(url)).body.collect() == [2], "\(host)")
                }
                let bytes = try await client.send(try request("http://a.example/a")).body.collect()
                #expect(bytes == [1])
                #expect(proxy.requests.map { $0.header("Host") } == ["a.example"])
            }
        }
    }

    @Test func `a gzip or brotli body with any compression ratio is decompressed up to the limit`() async throws {
        try await fetching { server, client in
            let gzip = """
                H4sIAAAAAAACA+3BgQAAAACAINb9JRapCgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\
                AAAAAAAAAAAAAAAAAAAAAGr/kSDDAAABAA==
                """
            let bytes = try #require(Base64.decode(gzip))
            server.route("/a", HTTPTestResponse(headers: [("Content-Encoding", "gzip")], body: .bytes(bytes)))
            var wanted = try request(server.url("/a"))
            wanted.bodyLimit = 65_536
            #expect(try await client.send(wanted).body.collect().count == 65_536)
            wanted.bodyLimit = 65_535
            #expect(await failure(of: client, wanted)?.kind == .tooLarge)
            wanted.decompresses = false
            let compressed = try await client.send(wanted).body.collect()
            #expect(compressed == bytes)
            let brotli: [UInt8] = [0x0b, 0x02, 0x80, 0x68, 0x65, 0x6c, 0x6c, 0x6f, 0x03]
            server.route("/b", HTTPTestResponse(headers: [("Content-Encoding", "br")], body: .bytes(brotli)))
            let hello = try await client.send(try request(server.url("/b"))).body.collect()
            #expect(hello == Array("hello".utf8))
            #expect(server.requests(for: "/b").first?.header("Accept-Encoding")?.contains("br") == true)
            server.route("/c", HTTPTestResponse(headers: [("Content-Encoding", "gzip")], body: .bytes([1, 2, 3])))
            #expect(await failure(of: client, try request(server.url("/c")))?.kind == .badAnswer)
        }
    }

    @Test(arguments: [true, false])
    func `a body that is larger than the limit is refused`(isAnnounced: Bool) async throws {
        try await fetching { server, client in
            let body = HTTPTestResponse.Body.repeated([7], total: 1_000_000_000)
            server.route("/a", HTTPTestResponse(body: body, announcesLength: isAnnounced))
            var wanted = try request(server.url("/a"))
            wanted.bodyLimit = 1_000_000
            let failure = await failure(of: client, wanted)
            #expect(failure?.kind == .tooLarge && failure?.retry == false)
            await server.answeredAll()
        }
    }

    @Test func `a slow reader pauses the transfer without a timeout and receives the whole body`() async throws {
        let clock = NIOLockedValueBox(MonotonicTime(nanoseconds: 1_000_000_000))
        var options = WebClientOptions()
        options.clock = { clock.withLockedValue(\.self) }
        try await fetching(options) { server, client in
            server.route("/a", HTTPTestResponse(body: .repeated([7], total: 40_000_000)))
            server.route("/b", HTTPTestResponse(body: .bytes([1])))
            let response = try await client.send(try request(server.url("/a")))
            while !response.body.owner.exchange.isPaused { try await Task.sleep(for: .milliseconds(1)) }
            // The silence limit passes without data from the server. The other request makes the client check the
            // clock.
            clock.withLockedValue { $0 = $0.advanced(by: .seconds(3_600)) }
            let other = try await client.send(try request(server.url("/b"))).body.collect()
            #expect(other == [1])
            var total = 0
            var largest = 0
            for try await chunk in response.body {
                total += chunk.count
                largest = max(largest, chunk.count)
            }
            #expect(total == 40_000_000)
            #expect(largest < 4 << 20, "\(largest) bytes were buffered")
        }
    }
}

/// Decodes base64 without Foundation.
enum Base64 {
    static func decode(_ text: String) -> [UInt8]? {
        let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
        var (bits, count, bytes) = (UInt32(0), 0, [UInt8]())
        for digit in text.utf8 where digit != UInt8(ascii: "=") {
            guard let value = digits.firstIndex(of: digit) else { return nil }
            bits = bits << 6 | UInt32(value)
            count += 6
            if count >= 8 {
                count -= 8
                bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
            }
        }
        return bytes
    }
}
