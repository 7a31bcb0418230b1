import PodcastModel
import TestSupport
import Testing

@testable import WebClient

@Suite(.timeLimit(.minutes(2))) struct WebFailureTests {
    @Test(
        arguments: [
            ("a connection closed at once", HTTPTestResponse().with(.close(afterBytes: -1)), .cut),
            (
                "a body cut short", HTTPTestResponse(body: .repeated([7], total: 9_000)).with(.close(afterBytes: 20)),
                .cut
            ),
            (
                "chunks cut short",
                HTTPTestResponse(body: .repeated([7], total: 9_000), announcesLength: false).with(
                    .close(afterBytes: 20)),
                .cut
            ),
            ("a reset", HTTPTestResponse(body: .repeated([7], total: 9_000)).with(.reset(afterBytes: 20)), .cut),
            ("no answer", HTTPTestResponse.stalled(), .silent),
            (
                "half an answer", HTTPTestResponse(body: .repeated([7], total: 9_000)).with(.stall(afterBytes: 20)),
                .silent
            ),
            (
                "an endless head",
                HTTPTestResponse(headers: (0..<200).map { ("X-\($0)", String(repeating: "x", count: 4_000)) }),
                .badAnswer
            ),
        ] as [(String, HTTPTestResponse, WebFailure.Kind)])
    func `a server’s error is reported by its kind and can be retried`(
        _ what: String, response: HTTPTestResponse, kind: WebFailure.Kind
    ) async throws {
        try await fetching { server, client in
            server.route("/a", response)
            var wanted = try request(server.url("/a"))
            // On a busy machine the other failures may take longer to occur.
            wanted.silenceLimit = kind == .silent ? .milliseconds(200) : .seconds(60)
            let failure = await failure(of: client, wanted)
            #expect(failure?.kind == kind, "\(what): \(failure?.description ?? "none")")
            #expect(failure?.retry == true)
            #expect(failure?.message.hasPrefix("127.0.0.1:\(server.port)") == true)
        }
    }

    @Test func `an endless response times out at the total limit`() async throws {
        try await fetching { server, client in
            let body = HTTPTestResponse.Body.repeated([7], total: 1 << 40)
            server.route("/a", HTTPTestResponse(body: body, chunkSize: 10, chunkInterval: 5))
            var wanted = try request(server.url("/a"))
            wanted.totalLimit = .milliseconds(300)
            #expect(await failure(of: client, wanted)?.kind == .timeOut)
            await server.answeredAll()
        }
    }

    @Test func `a server that doesn’t listen is unreachable`() async throws {
        let client = WebClient()
        let server = try await HTTPTestServer.start()
        await server.stop()
        let failure = await failure(of: client, try request(server.url("/a")))
        #expect(failure?.kind == .couldNotConnect && failure?.isUnreachable == true && failure?.retry == true)
        await client.shutdown()
    }

    @Test func `an unknown host is unreachable and its name is in the message`() async throws {
        var options = WebClientOptions()
        options.proxy = ""
        let client = WebClient(options)
        let failure = await failure(of: client, try request("http://no-such-host.invalid/a"))
        #expect(failure?.isUnreachable == true && failure?.retry == true, "\(failure?.description ?? "none")")
        #expect(failure?.message.contains("no-such-host.invalid") == true)
        await client.shutdown()
    }

    @Test func `an https request to a server without TLS fails with a TLS failure`() async throws {
        try await fetching { server, client in
            let wanted = try request(server.url("/a").replacing("http:", with: "https:"))
            let failure = await failure(of: client, wanted)
            #expect(failure?.kind == .tls, "\(failure?.description ?? "none")")
        }
    }

    @Test func `a file address is refused`() async throws {
        let client = WebClient()
        #expect(await failure(of: client, try request("file:///etc/passwd"))?.kind == .badAddress)
        await client.shutdown()
    }

    @Test func `cancelling a task ends the transfer at the server`() async throws {
        try await fetching { server, client in
            server.route("/a", HTTPTestResponse(body: .repeated([7], total: 1 << 40)).with(.stall(afterBytes: 100_000)))
            let wanted = try request(server.url("/a"))
            let task = Task { await failure(of: client, wanted) }
            await server.stalled(at: "/a")
            task.cancel()
            #expect(await task.value?.kind == .cancelled)
            await server.answeredAll()
        }
    }

    @Test func `dropping a response ends the transfer at the server`() async throws {
        try await fetching { server, client in
            server.route("/a", HTTPTestResponse(body: .repeated([7], total: 1 << 40)))
            var response = Optional(try await client.send(try request(server.url("/a"))))
            #expect(response?.status == 200)
            response = nil
            await server.answeredAll()
        }
    }

    @Test func `shutdown cancels running requests and refuses later ones`() async throws {
        try await fetching { server, client in
            server.route("/a", .stalled())
            let wanted = try request(server.url("/a"))
            let task = Task { await failure(of: client, wanted) }
            await server.stalled(at: "/a")
            await client.shutdown()
            #expect(await task.value?.kind == .cancelled)
            #expect(await failure(of: client, wanted)?.kind == .cancelled)
            await client.shutdown()
        }
    }

    @Test func `a client works again after its idle thread has ended`() async throws {
        var options = WebClientOptions()
        options.idleTimeout = .milliseconds(1)
        try await fetching(options) { server, client in
            server.route("/a", HTTPTestResponse(body: .bytes([1])))
            for _ in 0..<20 {
                let bytes = try await client.send(try request(server.url("/a"))).body.collect()
                #expect(bytes == [1])
                try await Task.sleep(for: .milliseconds(3))
            }
        }
    }

    @Test func `requests beyond the connections of a host are queued, and all succeed`() async throws {
        var options = WebClientOptions()
        options.connectionsPerHost = 2
        try await fetching(options) { server, client in
            server.route("/a", HTTPTestResponse(body: .repeated([7], total: 200_000), chunkInterval: 1))
            let wanted = try request(server.url("/a"))
            try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<30 { group.addTask { try await client.send(wanted).body.collect().count } }
                for try await count in group { #expect(count == 200_000) }
            }
            #expect(server.peakConcurrency <= 2)
        }
    }

    @Test(
        arguments: [
            ("120", Duration.seconds(120)), ("0", .zero), ("-3", .zero), ("1e300", .seconds(604_800)), ("nan", nil),
            ("soon", nil), ("Wed, 02 Oct 2002 13:00:00 GMT", .zero),
            ("Thu, 31 Dec 2099 23:59:59 GMT", .seconds(604_800)),
        ] as [(String, Duration?)])
    func `the wait that a server requests is limited to a week`(value: String, wait: Duration?) async throws {
        try await fetching { server, client in
            server.route("/a", .status(429, headers: [("Retry-After", value)]))
            let response = try await client.send(try request(server.url("/a")))
            #expect(response.status == 429 && response.retryAfter == wait)
        }
    }

    @Test(arguments: [
        (false, "a.example accepts connections but doesn’t respond."),
        (true, "a.example stopped sending within the response."),
    ])
    func `a timeout before the response and one within it are reported differently`(hasAnswered: Bool, says: String) {
        #expect(WebFailure.silent("a.example", hasAnswered: hasAnswered).message == says)
    }

    @Test func `a field whose value contains a line break is omitted`() {
        var headers = WebHeaders()
        headers.add("If-None-Match", "\"a\"\r\nX-Evil: 1")
        headers.add("X Y", "1")
        headers.add("X-Null", "a\u{0}b")
        headers.add("ETag", "\"é\"")
        #expect(headers.fields.map(\.name) == ["ETag"])
    }
}
