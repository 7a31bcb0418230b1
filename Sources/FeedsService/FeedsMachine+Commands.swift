import BusKit
import OwnerKit
import PodcastModel
import ProcessKit
import WireMessages

/// A command whose answer has a line for each feed.
struct Job: Sendable {
    var lines: [WireFeedResult?]
    /// Whether the answer is worth storing: the same command again would be answered otherwise.
    var storesAnswer: Bool
}

extension FeedsMachine {
    /// The most feeds that one command may name.
    static let nameLimit = 1_000

    mutating func handle(_ command: Command, now: Moment) -> [Effect] {
        let request: WireFeedsRequest
        do {
            request = try WireFeedsRequest(wireBytes: command.payload)
        } catch {
            return [refuse(command, Failure(.malformed, "The request to the feeds service can’t be read: \(error)"))]
        }
        switch request.command {
        case .subscribe(let subscribe):
            var given: WebCredentials?
            if !subscribe.user.isEmpty || !subscribe.password.isEmpty {
                let credentials = WebCredentials(user: subscribe.user, password: subscribe.password)
                do throws(Failure) { try credentials.check() } catch { return [refuse(command, error)] }
                given = credentials
            }
            return each(subscribe.urls, of: command, storesAnswer: true) { machine, url, waiter in
                machine.subscribe(url, waiter, given, keep: subscribe.keep)
            } then: {
                $0.startFetches(now: now)
            }
        case .check(let check):
            return each(check.urls, of: command, storesAnswer: false) { machine, url, waiter in
                machine.check(url, waiter)
            } then: {
                $0.startFetches(now: now)
            }
        case .refresh(let refresh):
            let named = refresh.podcasts
            let all = podcasts.current.all.filter(\.value.podcast.subscribed).keys.sorted().map(\.text)
            return each(named.isEmpty ? all : named, of: command, storesAnswer: false, isLimited: !named.isEmpty) {
                machine, id, waiter in
                machine.refresh(id, waiter)
            } then: {
                $0.startFetches(now: now)
            }
        case .unsubscribe(let unsubscribe): return self.unsubscribe(unsubscribe, command, now: now)
        case .answerAlert(let answer):
            return [answerAlert(answer, command, at: now.wall)]
        case .fetchChapters(let fetch): return fetchChapters(fetch.episode, command)
        case nil:
            return [refuse(command, Failure(.unknownCommand, "The feeds service doesn’t know this command."))]
        }
    }

    private mutating func answerAlert(_ answer: WireAnswerAlert, _ command: Command, at now: Timestamp) -> Effect {
        do throws(Failure) {
            let change = try alerts.answer(answer, at: now)
            var reply = WireFeedsReply()
            reply.alertAnswered = answer.answered(changed: change != nil)
            guard let change else { return .reply(command.id, .success(reply.wireBytes)) }
            return commit(
                change.changes, change.publications, Unsettled(command: command.id),
                answering: (command.id, reply.wireBytes))
        } catch {
            return refuse(command, error)
        }
    }

    private func refuse(_ command: Command, _ failure: Failure) -> Effect { .reply(command.id, .failure(failure)) }

    /// Opens a job with a line for each name.
    private mutating func each(
        _ names: [String], of command: Command, storesAnswer: Bool, isLimited: Bool = true,
        _ begin: (inout FeedsMachine, String, Waiter) -> WireFeedResult?,
        then: (inout FeedsMachine) -> [Effect]
    ) -> [Effect] {
        guard !isLimited || !names.isEmpty else {
            return [refuse(command, Failure(.invalidArgument, "No feed was named."))]
        }
        guard !isLimited || names.count <= Self.nameLimit else {
            return [
                refuse(
                    command,
                    Failure(.limitReached, "At most \(Self.nameLimit) feeds in one command; use several commands."))
            ]
        }
        guard jobs[command.id] == nil else { return [] }
        jobs[command.id] = Job(lines: Array(repeating: nil, count: names.count), storesAnswer: storesAnswer)
        var effects: [Effect] = []
        for (line, name) in names.enumerated() {
            let waiter = Waiter(request: command.id, line: line, name: name, wish: .refresh)
            if let result = begin(&self, name, waiter) { effects += answer(waiter, result) }
        }
        if names.isEmpty { effects += finish(command.id) }
        return effects + then(&self)
    }

    private mutating func subscribe(
        _ url: String, _ waiter: Waiter, _ given: WebCredentials?, keep: Bool
    ) -> WireFeedResult? {
        var waiter = waiter
        waiter.wish = .subscribe(keep: keep)
        waiter.name = WebAddress.repeatable(url)
        guard let named = WebAddress(url) else { return failed(waiter.name, .unusableAddress(url)) }
        var address = named.withoutCredentials
        let credentials = address.isFile ? nil : given ?? named.webCredentials
        guard let (id, subscription) = podcast(at: address) else {
            fetches.add(.new(address.identity), address, waiter, credentials)
            return nil
        }
        // A password for a feed that is read encrypted isn’t sent in the clear because http was typed.
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
        waiter.wish = .check
        waiter.name = WebAddress.repeatable(url)
        guard let named = WebAddress(url) else { return failed(waiter.name, .unusableAddress(url)) }
        let address = named.withoutCredentials
        fetches.add(.check(address.identity), address, waiter, named.webCredentials)
        return nil
    }

    private mutating func refresh(_ text: String, _ waiter: Waiter) -> WireFeedResult? {
        guard let id = PodcastID(text), let subscription = podcasts.current[id] else {
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

    /// The podcast whose feed is, or was, at an address.
    func podcast(at address: WebAddress) -> (PodcastID, Subscription)? { podcasts.current.podcast(at: address) }

    // MARK: - Unsubscribing

    private mutating func unsubscribe(_ command: WireUnsubscribe, _ request: Command, now: Moment) -> [Effect] {
        guard !command.podcasts.isEmpty, command.podcasts.count <= Self.nameLimit else {
            let failure = Failure(.invalidArgument, "Name 1 to \(Self.nameLimit) podcasts in one command.")
            return [refuse(request, failure)]
        }
        var reply = WireFeedsReply()
        var changes: [WireChange] = []
        var publications: [Publication] = []
        var next: [PodcastID: Subscription?] = [:]
        for text in command.podcasts {
            guard let id = PodcastID(text), let subscription = next[id] ?? podcasts.current[id] else {
                reply.results.append(failed(text, Failure(.notFound, "There is no podcast “\(text.prefix(80))”.")))
                continue
            }
            var podcast = subscription.podcast
            guard podcast.subscribed || command.forget else {
                reply.results.append(result(.unchanged, podcast.url, podcast))
                continue
            }
            podcast.subscribed = false
            podcast.nextRefresh = 0
            if command.forget {
                changes += Self.changes(forgetting: id)
                publications += Self.publications(forgetting: id, subscription)
                next.updateValue(nil, forKey: id)
            } else {
                var changed = subscription
                changed.podcast = podcast
                next.updateValue(changed, forKey: id)
                changes += Self.changes(storing: podcast)
                publications.append(Self.publication(podcast))
            }
            reply.results.append(result(.removed, podcast.url, podcast))
        }
        guard !next.isEmpty else { return [.reply(request.id, .success(reply.wireBytes))] }
        let forgotten = next.filter { $0.value == nil }.map(\.key)
        let effect = commit(
            changes, publications, Unsettled(command: request.id, forgotten: forgotten),
            answering: (request.id, reply.wireBytes)
        ) { podcasts in
            for (id, subscription) in next { podcasts[id] = subscription }
        }
        return [effect] + scheduleNext(now: now)
    }

    private static func changes(forgetting id: PodcastID) -> [WireChange] {
        [WireChange(.deletePodcast(id.text)), .deleting("seen", id.text), .deletingDocuments("chapters/\(id.text)")]
    }

    private static func publications(forgetting id: PodcastID, _ subscription: Subscription) -> [Publication] {
        let ids = subscription.seen.ids
        return [Publication(.delete, .podcast(id.text))]
            + WireEpisodesChanged.events(of: id, ids.count) { $0.removed = Array(ids[$1]) }
    }

    // MARK: - Answers

    /// Fills a line of a command's answer, and sends the answer if it was the last one.
    mutating func answer(_ waiter: Waiter, _ result: WireFeedResult) -> [Effect] {
        guard var job = jobs[waiter.request], job.lines.indices.contains(waiter.line), job.lines[waiter.line] == nil
        else {
            return []
        }
        var result = result
        // Who asks for a refresh names a podcast by its id; the answer says which that is.
        if case .refresh = waiter.wish, let id = PodcastID(waiter.name), let known = podcasts.current[id] {
            if !result.hasPodcast { result.podcast = self.result(result.kind, "", known.podcast).podcast }
            result.url = result.podcast.url
        }
        job.lines[waiter.line] = result
        jobs[waiter.request] = job
        return job.lines.contains(where: { $0 == nil }) ? [] : finish(waiter.request)
    }

    private mutating func finish(_ request: RequestID) -> [Effect] {
        guard let job = jobs.removeValue(forKey: request) else { return [] }
        var reply = WireFeedsReply()
        reply.results = job.lines.compactMap { $0 }
        let bytes = reply.wireBytes
        let hasEffect = reply.results.contains { $0.kind == .added || $0.kept }
        guard job.storesAnswer, hasEffect, bytes.count < Self.answerLimit else {
            return [.reply(request, .success(bytes))]
        }
        return [commit([], [], Unsettled(command: request, reply: bytes), answering: (request, bytes))]
    }

    func failed(_ url: String, _ failure: Failure) -> WireFeedResult {
        var result = WireFeedResult()
        result.url = url
        result.kind = .failed
        result.failure = WireFailure(failure)
        return result
    }

    /// A line about a podcast, without the texts that would make an answer about many feeds too long.
    func result(_ kind: WireFeedResult.Kind, _ url: String, _ podcast: WirePodcast) -> WireFeedResult {
        var result = WireFeedResult()
        result.url = url
        result.kind = kind
        result.podcast = podcast
        result.podcast.description_p = ""
        result.podcast.previousUrls = []
        return result
    }
}
