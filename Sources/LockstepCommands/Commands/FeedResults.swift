import ArgumentParser
import FoundationEssentials
import LockstepClient
import PodcastModel

/// Converts the addresses of feeds that users enter.
enum FeedAddress {
    /// The URL for a text: an address unchanged, a path as a file URL.
    ///
    /// - Throws: `badURL` for an empty text and an unsupported scheme, `fileMissing` for a path that doesn’t exist.
    static func url(_ text: String, in folder: String) throws(Failure) -> String {
        guard text.contains(where: { !$0.isWhitespace }) else {
            throw Failure(.badURL, "The address is empty. Give the http or https address of a feed, or a file.")
        }
        if let end = text.firstIndex(of: ":"), text.distance(from: text.startIndex, to: end) > 1,
            text[..<end].allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber || "+-.".contains($0)) }),
            !FileManager.default.fileExists(atPath: text)
        {
            guard let address = WebAddress(text) else { throw .unusableAddress(text) }
            return address.text
        }
        let path = text.hasPrefix("/") ? text : folder + "/" + text
        guard FileManager.default.fileExists(atPath: path) else {
            throw Failure(.fileMissing, "There is no file \(path). An address must begin with http:// or https://.")
        }
        guard let address = WebAddress(filePath: path) else { throw .unusableAddress(text) }
        return address.text
    }
}

/// The results of a command for several feeds.
struct FeedResults {
    /// The action on a feed, as the beginning of a sentence about its effect.
    enum Action: String, Sendable {
        case subscribing = "Subscribed to"
        case refreshing = "Refreshed"
        case unsubscribing = "Unsubscribed from"
        case forgetting = "Forgot"
        case restoring = "Restored"
    }

    private let results: [FeedsClient.Result]
    private let action: Action

    init(_ results: [FeedsClient.Result], of action: Action) {
        (self.results, self.action) = (results, action)
    }

    private var failed: [FeedsClient.Result] { results.filter { $0.kind == .failed } }

    /// Prints a line for each feed and a summary; failures on standard error.
    ///
    /// - Throws: as `requireSuccess`.
    func report(to output: Output) throws {
        try reportFailures(to: output)
        if !output.quiet || output.json && !failed.isEmpty {
            try output.value(.array(results.map(\.json)), lines: lines + sum)
        }
        try requireSuccess()
    }

    /// Prints the failures of several feeds on standard error.
    ///
    /// - Throws: the failure of a single feed.
    func reportFailures(to output: Output) throws {
        if results.count == 1, let only = failed.first, !only.isKept { throw Self.failure(only) }
        guard !output.json else { return }
        for result in failed {
            var failure = Self.failure(result)
            if result.isKept { failure.message = Sentence.stopped(failure.message) + " The subscription is kept." }
            Output.report(failure, json: false)
        }
    }

    /// - Throws: exit status 75 if some feeds failed.
    func requireSuccess() throws {
        guard failed.isEmpty else { throw ExitCode(ExitStatus.tryAgain.rawValue) }
    }

    /// The failure of a feed, with its name.
    private static func failure(_ result: FeedsClient.Result) -> Failure {
        var failure = result.failure ?? Failure(.fetchFailed, "The feed couldn’t be read.")
        let name = name(result)
        if !failure.message.contains(result.url), !failure.message.contains(name) {
            failure.message = "\(name): \(failure.message)"
        }
        return failure
    }

    /// The lines about feeds that didn’t fail.
    var lines: [String] { results.filter { $0.kind != .failed }.flatMap(lines(about:)) }

    var sum: [String] {
        guard results.count > 1 else { return [] }
        let kept = results.count { $0.kind == unchangedKind }
        let done = results.count - failed.count - kept
        let parts = [
            "\(action.rawValue) \(done) of \(NumberText.counted(results.count, "podcast"))",
            kept == 0 ? "" : "\(kept) \(unchangedWords)",
            failed.isEmpty ? "" : "\(failed.count) failed",
        ]
        return [parts.filter { !$0.isEmpty }.joined(separator: "; ") + "."]
    }

    /// The result that means that nothing had to be done; nil if the action applies to all feeds.
    private var unchangedKind: FeedsClient.Result.Kind? {
        switch action {
        case .subscribing: .alreadyThere
        case .unsubscribing, .forgetting, .restoring: .unchanged
        case .refreshing: nil
        }
    }

    /// What is true of the feeds for which nothing had to be done.
    private var unchangedWords: String {
        switch action {
        case .subscribing: "already subscribed"
        case .forgetting: "already forgotten"
        case .restoring: "not forgotten"
        case .unsubscribing, .refreshing: "not subscribed"
        }
    }

    static func name(_ result: FeedsClient.Result) -> String {
        result.podcast.flatMap { $0.title.isEmpty ? nil : $0.title } ?? result.url
    }

    private static let shownWarnings = 3

    /// The line of a result, and the feed’s warnings if the command named that feed.
    private func lines(about result: FeedsClient.Result) -> [String] {
        guard result.kind == .added || results.count == 1 || result.isPasswordChanged else { return [line(result)] }
        let more = result.warnings.count - Self.shownWarnings
        return [line(result)]
            + result.warnings.prefix(Self.shownWarnings).map { "  Warning: " + $0 }
            + (more > 0 ? ["  … and \(more) more: `lockstep feed check` lists them."] : [])
    }

    private func line(_ result: FeedsClient.Result) -> String {
        let name = Self.name(result)
        let new = NumberText.counted(result.newEpisodes, "new episode")
        switch result.kind {
        case .added:
            return "Subscribed to \(name): \(NumberText.counted(result.podcast?.episodeCount ?? 0, "episode"))."
        case .alreadyThere where result.isPasswordChanged:
            return "The new user name and password are used for \(name) from now on."
        case .alreadyThere: return "No change: you are already subscribed to \(name)."
        case .updated where action == .restoring:
            return "Restored \(name)\(result.podcast?.isSubscribed == true ? "; you are subscribed to it again" : "")."
        case .updated: return "\(name): \(new)."
        case .unchanged where action == .restoring: return "No change: \(name) wasn’t forgotten."
        case .unchanged where action == .forgetting:
            return "No change: \(name) was forgotten before.\(Self.deletion(result.podcast))"
        case .unchanged where action == .unsubscribing: return "No change: you aren’t subscribed to \(name)."
        case .unchanged: return "\(name): nothing new."
        case .removed where action == .forgetting: return "Forgot \(name).\(Self.deletion(result.podcast))"
        case .removed: return "Unsubscribed from \(name)."
        case .checked, .failed, .unknown: return "\(name): done."
        }
    }

    private static func deletion(_ podcast: Podcast?) -> String {
        guard let time = podcast?.deletion else { return "" }
        return " Everything about it will be deleted on \(TimeText.minute(milliseconds: time.milliseconds))."
    }
}
