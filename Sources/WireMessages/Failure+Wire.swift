import FoundationEssentials
package import PodcastModel
import SwiftProtobuf

extension Failure {
    /// Creates the failure for an ambiguous name, which several objects match.
    ///
    /// - Parameters:
    ///   - message: the sentence that the advice follows.
    ///   - candidates: the objects, of which the first 20 are listed; `detail`, cut to 100 characters,
    ///     distinguishes equal titles.
    ///   - detailed: whether all candidates have their details.
    package init(
        ambiguous message: String, advice: String = "Repeat the command with one of these IDs:",
        _ candidates: some Sequence<(id: String, title: String, detail: String)>, detailed: Bool = false
    ) {
        let listed = Array(candidates.prefix(20))
        let titles = Dictionary(grouping: listed, by: \.title)
        let detail = WireCandidates.with {
            $0.candidates = listed.map { candidate in
                let isOnlyOne = titles[candidate.title]?.count == 1
                let detail = isOnlyOne && !detailed ? "" : Self.cut(candidate.detail)
                return .with { ($0.id, $0.title, $0.detail) = (candidate.id, candidate.title, detail) }
            }
        }
        self.init(
            code: FailureCode.ambiguous.rawValue, message: "\(message) \(advice)", detail: detail.wireBytes)
    }

    /// Creates the failure of a web page in place of a feed.
    ///
    /// - Parameter feeds: the feeds that it links to.
    package init(webPageWith feeds: [(address: String, title: String)]) {
        let links = feeds.count == 1 ? "the feed \(feeds[0].address)" : "\(feeds.count) feeds"
        let detail = WireCandidates.with {
            $0.candidates = feeds.map { feed in .with { ($0.id, $0.title) = (feed.address, feed.title) } }
        }
        self.init(
            code: FailureCode.notAFeed.rawValue,
            message: "This is a web page, not a podcast feed. It links to \(links).", detail: detail.wireBytes)
    }

    private static func cut(_ detail: String) -> String {
        detail.count > 100 ? detail.prefix(99) + "…" : detail
    }

    /// The failure of a service process whose name a newer generation has registered.
    package static func fenced(by generation: UInt32) -> Failure {
        var superseded = WireSuperseded()
        superseded.generation = generation
        return Failure(
            code: FailureCode.fenced.rawValue, message: "A newer process of the same service has taken over.",
            detail: superseded.wireBytes)
    }

    /// The newest generation of the service that the sender of `fenced` knows; 0 if unknown.
    package var fencingGeneration: UInt32 {
        guard known == .fenced else { return 0 }
        return (try? WireSuperseded(wireBytes: detail))?.generation ?? 0
    }
}

extension WireFailure {
    package init(_ failure: Failure) {
        self.init()
        code = failure.code
        message = failure.message
        retry = failure.retry
        detail = Data(failure.detail)
    }

    /// The failure; without a code it is an `internalError`.
    package var failure: Failure {
        Failure(
            code: code.isEmpty ? FailureCode.internalError.rawValue : code, message: message, retry: retry,
            detail: [UInt8](detail))
    }
}
