import BusKit
import OwnerKit
import PodcastModel
import ProcessKit
import SwiftProtobuf
import WireMessages

/// A command whose reply has a line for each feed.
struct FeedCommand: Sendable {
    var lines: [WireFeedResult?]
    /// Whether the reply is stored, because a repeat of the command would have another result.
    var storesAnswer: Bool
}

extension FeedsMachine {
    static let nameLimit = 1_000

    mutating func handle(_ command: Command, now: Moment, _ effects: inout [Effect]) {
        do throws(Failure) {
            try perform(command, now: now, &effects)
        } catch {
            effects.append(.reply(command.id, .failure(error)))
        }
    }

    private mutating func perform(_ command: Command, now: Moment, _ effects: inout [Effect]) throws(Failure) {
        guard let request = try? WireFeedsRequest(wireBytes: command.payload) else {
            throw Failure(.malformed, "The request to the feeds service can’t be read.")
        }
        switch request.command {
        case .subscribe(let subscribe):
            let given = try Self.credentials(user: subscribe.user, password: subscribe.password)
            try each(subscribe.urls, of: command, storesAnswer: true, now: now, &effects) { machine, url, waiter in
                machine.subscribe(url, waiter, given, keep: subscribe.keep)
            }
        case .check(let check):
            try each(check.urls, of: command, now: now, &effects) { machine, url, waiter in
                machine.check(url, waiter)
            }
        case .refresh(let refresh):
            let named = refresh.podcasts
            let all = library.current.sorted.map(\.podcast).filter(\.subscribed).map(\.id)
            try each(
                named.isEmpty ? all : named, of: command, isLimited: !named.isEmpty, now: now, &effects
            ) { machine, id, waiter in
                machine.refresh(id, waiter)
            }
        case .unsubscribe(let unsubscribe): try self.unsubscribe(unsubscribe, command, now: now, &effects)
        case .undoForget(let undo): try undoForget(undo, command, now: now, &effects)
        case .answerAlert(let answer): try answerAlert(answer, command, at: now.wall, &effects)
        case .inbox(let clear): try clearInbox(clear, command, &effects)
        case .refreshAll: refreshAll(command, now: now, &effects)
        case .addFeeds(let add): try addFeeds(add, command, now: now, &effects)
        case .jobResults(let query): try jobResults(query, command, &effects)
        case .changeAddress(let change): try changeAddress(change, command, now: now, &effects)
        case .setPodcast(let set): try self.set(set, command, now: now, &effects)
        case .fetchChapters(let fetch): try fetchChapters(fetch.episode, command, &effects)
        case nil: throw Failure(.unknownCommand, "The feeds service doesn’t know this command.")
        }
    }

    private mutating func clearInbox(
        _ clear: WireClearInbox, _ command: Command, _ effects: inout [Effect]
    ) throws(Failure) {
        guard clear.all || clear.unlisted || !clear.episodes.isEmpty else {
            throw Failure(.invalidArgument, "The request names no episodes to remove from the inbox.")
        }
        guard clear.episodes.count <= RequestSizes.episodes else {
            throw Failure(
                .limitReached,
                "The request names \(clear.episodes.count) episodes; at most \(RequestSizes.episodes) are allowed.")
        }
        let invalid = clear.episodes.first { EpisodeID($0) == nil }
        if let invalid { throw Failure(.invalidArgument, "“\(invalid)” isn’t a valid episode ID.") }
        let change = WireChange.with {
            $0.setFlags.episodes = clear.episodes
            $0.setFlags.all = clear.all
            $0.setFlags.unlisted = clear.unlisted
            $0.setFlags.clear = WireEpisode.newFlag
        }
        commit(
            [change], [Publication(.event, .inbox, clear.wireBytes)],
            answering: (command.id, WireFeedsReply().wireBytes), &effects
        ) { _ in }
    }

    private mutating func answerAlert(
        _ answer: WireAnswerAlert, _ command: Command, at now: Timestamp, _ effects: inout [Effect]
    ) throws(Failure) {
        var alerts = library.current.alerts
        let change = try alerts.answer(answer, at: now)
        let reply = WireFeedsReply.with { $0.alertAnswered = answer.answered(changed: change != nil) }
        guard let change else { return effects.append(.reply(command.id, .success(reply.wireBytes))) }
        commit(
            change.changes, change.publications, answering: (command.id, reply.wireBytes), &effects
        ) { $0.alerts = alerts }
    }

    mutating func raiseSecretsDamaged(_ message: String, now: Timestamp, _ effects: inout [Effect]) {
        let alert = WireAlert(
            "secretsDamaged", of: .feeds, named: "secretsDamaged/\(now.milliseconds)",
            title: "The passwords of podcasts were lost", message: message, severity: .error, at: now)
        var alerts = library.current.alerts
        let change = alerts.raise(alert)
        commit(change.changes, change.publications, &effects) { $0.alerts = alerts }
    }

    /// The user and password that a command gives; nil if both are empty.
    static func credentials(user: String, password: String) throws(Failure) -> WebCredentials? {
        guard !user.isEmpty || !password.isEmpty else { return nil }
        let given = WebCredentials(user: user, password: password)
        try given.check()
        return given
    }

    mutating func each(
        _ names: [String], of command: Command, storesAnswer: Bool = false, isLimited: Bool = true, now: Moment,
        _ effects: inout [Effect], _ begin: (inout FeedsMachine, String, Waiter) -> WireFeedResult?
    ) throws(Failure) {
        guard !isLimited || !names.isEmpty else { throw Failure(.invalidArgument, "The request names no feeds.") }
        guard !isLimited || names.count <= Self.nameLimit else {
            throw Failure(.limitReached, "A command can name at most \(Self.nameLimit) feeds; use several commands.")
        }
        guard commands[command.id] == nil else { return }
        commands[command.id] = FeedCommand(lines: Array(repeating: nil, count: names.count), storesAnswer: storesAnswer)
        for (line, name) in names.enumerated() {
            let waiter = Waiter(target: .command(command.id), line: line, name: name, operation: .refresh)
            if let result = begin(&self, name, waiter) { answer(waiter, result, &effects) }
        }
        if names.isEmpty { finish(command.id, &effects) }
        startFetches(now: now, &effects)
    }

    private mutating func subscribe(
        _ url: String, _ waiter: Waiter, _ given: WebCredentials?, keep: Bool
    ) -> WireFeedResult? {
        var waiter = waiter
        waiter.operation = .subscribe(keep: keep)
        waiter.name = WebAddress.redacted(url)
        guard let named = WebAddress(url) else { return failed(waiter.name, .unusableAddress(url)) }
        var address = named.withoutCredentials
        let credentials = address.isFile ? nil : given ?? named.webCredentials
        guard let (id, subscription) = library.current.podcast(at: address) else {
            fetches.add(.new(address.identity), address, waiter, credentials)
            return nil
        }
        // A password for a feed that is read over TLS isn’t sent unencrypted, even if the command has the address with
        // http.
        if let known = WebAddress(subscription.podcast.url), known.scheme == "https", known.identity == address.identity
        {
            address = known
        }
        guard subscription.podcast.subscribed else {
            fetches.add(.podcast(id), address, waiter, credentials)
            return nil
        }
        guard let credentials, credentials != secrets.credentials(of: id.text, at: address) else {
            return result(.alreadyThere, waiter.name, subscription.podcast)
        }
        fetches.add(.signIn(id, credentials), address, waiter, credentials)
        return nil
    }

    private mutating func check(_ url: String, _ waiter: Waiter) -> WireFeedResult? {
        var waiter = waiter
        waiter.operation = .check
        waiter.name = WebAddress.redacted(url)
        guard let named = WebAddress(url) else { return failed(waiter.name, .unusableAddress(url)) }
        let address = named.withoutCredentials
        fetches.add(.check(address.identity), address, waiter, named.webCredentials)
        return nil
    }

    private mutating func refresh(_ text: String, _ waiter: Waiter) -> WireFeedResult? {
        guard let id = PodcastID(text), let subscription = library.current[id] else {
            return failed(text, Failure(.notFound, "There is no podcast “\(text.prefix(80))”."))
        }
        let podcast = subscription.podcast
        guard podcast.subscribed else {
            return failed(
                podcast.url,
                Failure(.notFound, "“\(podcast.title)” is not subscribed to; subscribe to it again first."))
        }
        guard let address = WebAddress(podcast.url) else { return failed(podcast.url, .unusableAddress(podcast.url)) }
        fetches.add(.podcast(id), address, waiter)
        return nil
    }

    // MARK: - Answers

    /// Sets a line of a job, or of a command’s reply, which is sent after the last line.
    mutating func answer(_ waiter: Waiter, _ result: WireFeedResult, _ effects: inout [Effect]) {
        let request: RequestID
        switch waiter.target {
        case .command(let id): request = id
        case .job(let id):
            jobs[id]?.finish(waiter.line, result)
            return
        }
        guard var command = commands[request], command.lines.indices.contains(waiter.line),
            command.lines[waiter.line] == nil
        else { return }
        var result = result
        // A refresh names a podcast by its ID; the reply describes it.
        if case .refresh = waiter.operation, let id = PodcastID(waiter.name), let known = library.current[id] {
            if !result.hasPodcast { result.podcast = self.result(result.kind, "", known.podcast).podcast }
            result.url = result.podcast.url
        }
        command.lines[waiter.line] = result
        commands[request] = command
        if !command.lines.contains(where: { $0 == nil }) { finish(request, &effects) }
    }

    private mutating func finish(_ request: RequestID, _ effects: inout [Effect]) {
        guard let command = commands.removeValue(forKey: request) else { return }
        var reply = WireFeedsReply()
        reply.results = command.lines.compactMap { $0 }
        let bytes = reply.wireBytes
        let hasEffect = reply.results.contains { [.added, .updated].contains($0.kind) || $0.kept }
        guard command.storesAnswer, hasEffect, bytes.count < Self.answerLimit else {
            return effects.append(.reply(request, .success(bytes)))
        }
        // The reported changes are durable already.
        commit([], answering: (request, bytes), onRefusal: .success(bytes), &effects)
    }

    /// Returns a reply that can be stored. In one that would be too long, podcasts have only what names them.
    static func stored(_ reply: WireFeedsReply) -> [UInt8] {
        let bytes = reply.wireBytes
        guard bytes.count >= answerLimit else { return bytes }
        var brief = reply
        for index in brief.results.indices {
            let podcast = reply.results[index].podcast
            brief.results[index].url = ""
            brief.results[index].podcast = .with {
                ($0.id, $0.title) = (podcast.id, String(podcast.title.prefix(100)))
                ($0.subscribed, $0.episodeCount) = (podcast.subscribed, podcast.episodeCount)
                $0.forgetAt = podcast.forgetAt
            }
        }
        return brief.wireBytes
    }

    /// Returns a line with a failure, and the podcast if there is one.
    func failed(
        _ url: String, _ failure: Failure, _ podcast: WirePodcast? = nil, isKept: Bool = false
    ) -> WireFeedResult {
        var result = podcast.map { self.result(.failed, url, $0) } ?? WireFeedResult()
        result.url = url
        result.kind = .failed
        result.failure = WireFailure(failure)
        result.kept = isKept
        return result
    }

    /// Returns a line about a podcast, without the texts that would make a reply about many feeds too long.
    func result(_ kind: WireFeedResult.Kind, _ url: String, _ podcast: WirePodcast) -> WireFeedResult {
        .with {
            ($0.url, $0.kind, $0.podcast) = (url, kind, podcast)
            $0.podcast.description_p = ""
            $0.podcast.previousUrls = []
        }
    }
}
