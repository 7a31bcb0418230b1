import BusKit
import OwnerKit
import PodcastModel
import SwiftProtobuf
import WireMessages

// Changes what the user says about podcasts: tags and own titles.

extension FeedsMachine {
    mutating func set(
        _ request: WireSetPodcast, _ command: Command, now: Moment, _ effects: inout [Effect]
    ) throws(Failure) {
        guard !request.podcasts.isEmpty, request.podcasts.count <= RequestSizes.episodes else {
            throw Failure(.invalidArgument, "Name 1 to \(RequestSizes.episodes) podcasts in one command.")
        }
        guard !request.hasTitle || request.podcasts.count == 1 else {
            throw Failure(.invalidArgument, "A title belongs to a single podcast; the request names several.")
        }
        let title = try request.hasTitle && !request.title.isEmpty ? PodcastTitle.checked(request.title) : ""
        guard request.addTags.count <= PodcastTag.limit else {
            throw Failure(.limitReached, "A podcast has at most \(PodcastTag.limit) tags; name fewer.")
        }
        var added: [String] = []
        for tag in request.addTags { added.append(try PodcastTag.checked(tag)) }
        let removed = Set(request.removeTags.map { PodcastTag.key(PodcastTag.trimmed($0)) })
        var reply = WireFeedsReply()
        var changed: [WirePodcast] = []
        for text in request.podcasts {
            guard let id = PodcastID(text), var podcast = library.current[id]?.podcast else {
                reply.results.append(failed(text, Failure(.notFound, "There is no podcast “\(text.prefix(80))”.")))
                continue
            }
            let before = podcast
            podcast.changeTags(adding: added, removing: removed)
            guard podcast.tags.count <= PodcastTag.limit else {
                let failure = Failure(
                    .limitReached,
                    "“\(podcast.title)” would have more than \(PodcastTag.limit) tags; nothing was added.")
                reply.results.append(failed(podcast.url, failure, before))
                continue
            }
            if request.hasTitle { podcast.setOwnTitle(title) }
            if podcast != before { changed.append(podcast) }
            reply.results.append(result(podcast == before ? .unchanged : .updated, podcast.url, podcast))
        }
        guard !changed.isEmpty else { return effects.append(.reply(command.id, .success(Self.stored(reply)))) }
        commit(
            changed.map(Self.change(storing:)), changed.flatMap(publications),
            answering: (command.id, Self.stored(reply)),
            &effects
        ) { library in
            for podcast in changed {
                guard let id = PodcastID(podcast.id) else { continue }
                library[id]?.podcast = podcast
            }
        }
    }
}

// MARK: - Addresses

extension FeedsMachine {
    /// Fetches a podcast’s feed at another address, and changes the address only if that succeeds.
    mutating func changeAddress(
        _ change: WireChangeAddress, _ command: Command, now: Moment, _ effects: inout [Effect]
    ) throws(Failure) {
        guard let id = PodcastID(change.podcast), let podcast = library.current[id]?.podcast else {
            throw Failure(.notFound, "There is no podcast “\(change.podcast.prefix(80))”.")
        }
        guard podcast.subscribed else {
            throw Failure(.notApplicable, "“\(podcast.title)” is not subscribed to; subscribe to it again first.")
        }
        let given = try Self.credentials(user: change.user, password: change.password)
        guard let named = WebAddress(change.url) else { throw .unusableAddress(change.url) }
        let address = named.withoutCredentials
        if let failure = conflict(of: id, at: address) { throw failure }
        let credentials = address.isFile ? nil : given ?? named.webCredentials
        let name = WebAddress.redacted(change.url)
        try each([name], of: command, storesAnswer: true, now: now, &effects) { machine, name, waiter in
            guard address.text != podcast.url || credentials != nil else {
                return machine.result(.unchanged, name, podcast)
            }
            var waiter = waiter
            waiter.operation = .move
            machine.fetches.add(.move(id, address.text), address, waiter, credentials)
            return nil
        }
    }

    /// The failure of an address that belongs to another podcast; nil if it doesn’t.
    private func conflict(of id: PodcastID, at address: WebAddress) -> Failure? {
        guard let (other, subscription) = library.current.podcast(at: address), other != id else { return nil }
        return Failure(
            .notApplicable,
            "“\(subscription.podcast.title)” (\(other)) has, or had, this address. Delete that podcast first.")
    }

    mutating func fetchedMoved(
        _ fetch: Fetch, _ id: PodcastID, _ outcome: FetchOutcome, now: Moment, _ effects: inout [Effect]
    ) {
        switch outcome {
        case .failed(let failure, _): fail(fetch, failure, &effects)
        case .unchanged: fail(fetch, Failure(.fetchFailed, "\(fetch.address.host) didn’t send a feed."), &effects)
        case .feed(let feed):
            if let failure = conflict(of: id, at: feed.address) { return fail(fetch, failure, &effects) }
            beginMerge(fetch, feed, now: now, &effects)
        }
    }
}

extension WirePodcast {
    /// Adds and removes tags. Those that differ only in case are the same, and keep their first form.
    ///
    /// - Parameter keys: the removed tags, in the form for comparison.
    mutating func changeTags(adding added: [String], removing keys: Set<String>) {
        tags.removeAll { keys.contains(PodcastTag.key($0)) }
        for tag in added where !tags.contains(where: { PodcastTag.key($0) == PodcastTag.key(tag) }) { tags.append(tag) }
    }

    /// Sets the user’s own title; an empty one, or the feed’s, restores the feed’s.
    fileprivate mutating func setOwnTitle(_ own: String) {
        let original = feedTitle.isEmpty ? title : feedTitle
        title = own.isEmpty ? original : own
        feedTitle = title == original ? "" : original
    }

    /// Adds the tags and, unless it has one, the own title of another list of podcasts. Tags beyond the limit are left
    /// out.
    mutating func adopt(tags added: [String], ownTitle: String) {
        changeTags(adding: added, removing: [])
        if tags.count > PodcastTag.limit { tags.removeLast(tags.count - PodcastTag.limit) }
        if !ownTitle.isEmpty, feedTitle.isEmpty { setOwnTitle(ownTitle) }
    }

    /// Sets the feed’s title, which is shown unless the user gave the podcast another one. The user’s title stays, also
    /// if the feed uses the same for a time.
    mutating func setFeedTitle(_ text: String) {
        if feedTitle.isEmpty { title = text } else { feedTitle = text }
    }
}
