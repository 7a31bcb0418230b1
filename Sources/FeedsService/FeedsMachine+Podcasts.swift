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
        guard !changed.isEmpty else { return effects.append(.reply(command.id, .success(reply.wireBytes))) }
        commit(
            changed.map(Self.change(storing:)), changed.flatMap(publications), answering: (command.id, reply.wireBytes),
            &effects
        ) { library in
            for podcast in changed {
                guard let id = PodcastID(podcast.id) else { continue }
                library[id]?.podcast = podcast
            }
        }
    }
}

extension WirePodcast {
    /// Adds and removes tags. Those that differ only in case are the same, and keep their first form.
    ///
    /// - Parameter keys: the removed tags, in the form for comparison.
    fileprivate mutating func changeTags(adding added: [String], removing keys: Set<String>) {
        tags.removeAll { keys.contains(PodcastTag.key($0)) }
        for tag in added where !tags.contains(where: { PodcastTag.key($0) == PodcastTag.key(tag) }) { tags.append(tag) }
    }

    /// Sets the user’s own title; an empty one, or the feed’s, restores the feed’s.
    fileprivate mutating func setOwnTitle(_ own: String) {
        let original = feedTitle.isEmpty ? title : feedTitle
        title = own.isEmpty ? original : own
        feedTitle = title == original ? "" : original
    }

    /// Sets the feed’s title, which is shown unless the user gave the podcast another one.
    mutating func setFeedTitle(_ text: String) {
        if feedTitle.isEmpty { title = text } else if text == title { feedTitle = "" } else { feedTitle = text }
    }
}
