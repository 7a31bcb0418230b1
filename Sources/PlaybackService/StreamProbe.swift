import NIOConcurrencyHelpers
package import PodcastModel
import WebClient

/// A web server’s answer to a probe.
package enum ProbeAnswer: Sendable, Hashable {
    case audio(AudioTag)
    /// A status code other than success.
    case refused(Int)
    /// The data isn’t audio; the engine may still be able to play it.
    case notAudio(Failure)
    /// The server didn’t answer; the reason is used if the engine fails in the same way.
    case unanswered(Failure?)
}

/// Probes web servers for the audio at an address in parallel with the engine, whose library reports no status codes.
///
/// It requests only the first byte, which servers that count downloads don’t count.
final class StreamProbe: Sendable {
    private struct State {
        var tasks: [UInt64: Task<Void, Never>] = [:]
        var count: UInt64 = 0
        var isShut = false
    }

    private let client: WebClient
    private let state = NIOLockedValueBox(State())

    init() {
        var options = WebClientOptions()
        options.idleTimeout = .seconds(1)
        client = WebClient(options)
    }

    /// Calls `report` once, with the answer or after 15 s; not after `shutdown`.
    func ask(
        _ url: String, _ credentials: [WebOrigin: WebCredentials] = [:],
        report: @escaping @Sendable (ProbeAnswer) -> Void
    ) {
        guard let address = WebAddress(url) else { return report(.unanswered(nil)) }
        state.withLockedValue { state in
            guard !state.isShut else { return }
            state.count += 1
            let number = state.count
            state.tasks[number] = Task {
                let answer = await self.ask(address, credentials)
                if !Task.isCancelled { report(answer) }
                self.state.withLockedValue { _ = $0.tasks.removeValue(forKey: number) }
            }
        }
    }

    func shutdown() async {
        let tasks = state.withLockedValue { state in
            state.isShut = true
            return Array(state.tasks.values)
        }
        for task in tasks { task.cancel() }
        for task in tasks { await task.value }
        await client.shutdown()
    }

    private func ask(_ address: WebAddress, _ credentials: [WebOrigin: WebCredentials]) async -> ProbeAnswer {
        var request = WebRequest(address)
        request.credentials = credentials
        request.decompresses = false
        request.range = WebRange(from: 0, to: 0)
        (request.silenceLimit, request.totalLimit) = (.seconds(10), .seconds(15))
        // The body isn’t read: the transfer ends with the response.
        let response: WebResponse
        do {
            response = try await client.send(request)
        } catch {
            // libmpv doesn’t verify certificates, so the engine may still play the audio.
            guard error.kind != .tls else { return .unanswered(nil) }
            return .unanswered(error.failure(.streamFailed))
        }
        // An empty file has no first byte (RFC 9110, section 15.5.17).
        guard response.status != 416, response.headers["Content-Length"] != "0" || response.status != 200 else {
            return .notAudio(OtherContent.nothing.refusal(from: address.host, .decoderFailed))
        }
        guard (200..<300).contains(response.status) else { return .refused(response.status) }
        if let other = response.headers["Content-Type"].flatMap(OtherContent.init(mediaType:)) {
            return .notAudio(other.refusal(from: address.host, .decoderFailed))
        }
        let whole =
            response.status == 206
            ? response.headers["Content-Range"]?.split(separator: "/").last.flatMap { UInt64($0) }
            : response.headers["Content-Length"].flatMap { UInt64($0) }
        return .audio(AudioTag(etag: response.headers["ETag"] ?? "", size: whole ?? 0))
    }
}
