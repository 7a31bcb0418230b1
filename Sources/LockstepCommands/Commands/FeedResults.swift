import ArgumentParser
import BusKit
import FoundationEssentials
import LockstepClient
import PodcastModel
import WireMessages

/// Addresses of feeds as users write them.
enum FeedAddress {
    /// The URL for a text: an address as it is, a path as a file URL.
    ///
    /// - Throws: `badURL` for an empty text and a scheme that is not supported, `fileMissing` for a path that is not there.
    static func url(_ text: String, in folder: String) throws(Failure) -> String {
        guard text.contains(where: { !$0.isWhitespace }) else {
            throw Failure(.badURL, "The address is empty. Give the http or https address of a feed, or a file.")
        }
        if let end = text.firstIndex(of: ":"), text.distance(from: text.startIndex, to: end) > 1,
            text[..<end].allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber || "+-.".contains($0)) }),
            !FileManager.default.fileExists(atPath: text)
        {
            guard let address = WebAddress(text) else {
                throw .unusableAddress(text)
            }
            return address.text
        }
        let path = text.hasPrefix("/") ? text : folder + "/" + text
        guard FileManager.default.fileExists(atPath: path) else {
            throw Failure(
                .fileMissing, "There is no file \(path). An address must begin with http:// or https://.")
        }
        guard let address = WebAddress(filePath: path) else {
            throw .unusableAddress(text)
        }
        return address.text
    }
}

/// What became of each of several feeds.
struct FeedResults {
    /// What was asked for.
    enum Deed: Sendable {
        case subscribing
        case refreshing
        case unsubscribing
        case forgetting
    }

    private let results: [WireFeedResult]
    private let deed: Deed

    /// The results, in order.
    init(_ results: [WireFeedResult], of deed: Deed) {
        self.results = results
        self.deed = deed
    }

    private var failed: [WireFeedResult] { results.filter { $0.kind == .failed } }

    /// Prints a line for each and the sum.
    ///
    /// - Throws: the failure of the only one; exit status 75 when some of several failed.
    func report(to output: Output, doing verb: String) throws {
        if results.count == 1, let only = failed.first, !only.kept {
            var failure = only.failure.failure
            let name = Self.name(only)
            if !failure.message.contains(only.url), !failure.message.contains(name) {
                failure.message = "\(name): \(failure.message)"
            }
            throw failure
        }
        if !output.quiet || !failed.isEmpty {
            try output.value(.array(results.map(\.json)), lines: lines + sum(verb))
        }
        guard failed.isEmpty else { throw ExitStatusError.partial }
    }

    /// What is said of each.
    var lines: [String] { results.flatMap(lines(about:)) }

    private func sum(_ verb: String) -> [String] {
        guard results.count > 1 else { return results.isEmpty ? ["No change: there are no podcasts."] : [] }
        let done = results.count - failed.count
        return [
            "\(done) of \(NumberText.counted(results.count, "podcast")) \(verb)"
                + (failed.isEmpty ? "." : ", \(failed.count) failed.")
        ]
    }

    private static func name(_ result: WireFeedResult) -> String {
        DisplayText.sanitised(result.podcast.title.isEmpty ? result.url : result.podcast.title)
    }

    /// The most warnings about one feed that are shown.
    private static let shownWarnings = 3

    /// The line of a result, and what is wrong with its feed where somebody has just asked for that one.
    private func lines(about result: WireFeedResult) -> [String] {
        guard result.kind == .added || results.count == 1 || result.passwordChanged else { return [line(result)] }
        let more = result.warnings.count - Self.shownWarnings
        return [line(result)]
            + result.warnings.prefix(Self.shownWarnings).map { "  Warning: " + DisplayText.sanitised($0) }
            + (more > 0 ? ["  … and \(more) more: `lockstep feed check` lists them."] : [])
    }

    private func line(_ result: WireFeedResult) -> String {
        let name = Self.name(result)
        let new = NumberText.counted(Int(result.newEpisodes), "new episode")
        switch result.kind {
        case .added:
            return "Subscribed to \(name): \(NumberText.counted(Int(result.podcast.episodeCount), "episode"))."
        case .alreadyThere where result.passwordChanged:
            return "\(name) will be read with the new user and password from now on."
        case .alreadyThere: return "No change: \(name) is already subscribed to."
        case .updated: return "\(name): \(new)."
        case .unchanged where deed == .unsubscribing: return "No change: \(name) is not subscribed to."
        case .unchanged: return "\(name): nothing new."
        case .removed: return deed == .forgetting ? "Forgot \(name)." : "Unsubscribed from \(name)."
        case .failed:
            return "\(name): \(Sentence.stopped(DisplayText.sanitised(result.failure.message)))"
                + (result.kept ? " Kept." : "")
        case .checked: return "\(name): \(NumberText.counted(Int(result.report.episodes), "episode"))."
        case .unknown, .UNRECOGNIZED: return "\(name): done."
        }
    }
}
