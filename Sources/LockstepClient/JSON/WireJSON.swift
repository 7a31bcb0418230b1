package import PodcastModel
import SwiftProtobuf
package import WireMessages

// The JSON representation of wire messages (`protocols/cli.md`).

extension WireFailure {
    package var json: JSONValue {
        .object(["code": .string(code), "message": .string(message), "retry": .bool(retry)])
    }
}

extension Failure {
    /// The failure, with its message sanitised for a terminal.
    package var sanitised: Failure {
        var failure = self
        failure.message = DisplayText.sanitised(message)
        return failure
    }

    /// The JSON object that `--json` writes to standard error.
    package var json: JSONValue {
        let error = WireFailure(self).json
        let things = candidates.map {
            JSONValue.object(["id": .string($0.id), "title": .string($0.title), "detail": .text($0.detail)])
        }
        return .object(["error": things.isEmpty ? error : error.adding("candidates", .array(things))])
    }

    /// The candidates of an `ambiguous` failure, or the feeds of a web page; empty for other codes.
    package var candidates: [(id: String, title: String, detail: String)] {
        guard known == .ambiguous || known == .notAFeed, let message = try? WireCandidates(wireBytes: detail) else {
            return []
        }
        return message.candidates.map {
            (DisplayText.sanitised($0.id), DisplayText.sanitised($0.title), DisplayText.sanitised($0.detail))
        }
    }

    /// Creates the failure of a web page that links to feeds.
    package static func webPage(_ feeds: [(address: String, title: String)]) -> Failure {
        Failure(webPageWith: feeds)
    }

    /// Creates the failure of a text with several matches, of which it lists 20.
    package static func ambiguous(
        _ message: String, _ candidates: [(id: String, title: String, detail: String)]
    ) -> Failure {
        Failure(ambiguous: message, candidates)
    }
}

extension WirePlaybackState.Status {
    package var word: String {
        switch self {
        case .idle, .unknown, .UNRECOGNIZED: "idle"
        case .loading: "loading"
        case .playing: "playing"
        case .paused: "paused"
        case .finished: "finished"
        case .failed: "failed"
        }
    }
}

extension WireAlert.Severity {
    package var word: String {
        switch self {
        case .warning: "warning"
        case .error: "error"
        case .info, .unknown, .UNRECOGNIZED: "info"
        }
    }
}

extension WireServiceStatus.State {
    package var word: String {
        switch self {
        case .starting: "starting"
        case .ready: "ready"
        case .down: "down"
        case .unknown, .UNRECOGNIZED: "unknown"
        }
    }
}

extension WireChapter {
    package var json: JSONValue {
        .object(["start": .seconds(start), "end": .knownSeconds(end), "title": .string(title), "url": .text(url)])
    }
}

extension WireEpisodeSummary {
    /// The object that queue entries contain.
    package var json: JSONValue {
        .object([
            "id": .string(id), "title": .string(title), "podcast": .string(podcastTitle),
            "duration": .knownSeconds(duration), "position": .seconds(position),
        ])
    }

    /// The object that the status contains.
    package var briefJSON: JSONValue {
        .object(["id": .string(id), "title": .string(title), "podcast": .string(podcastTitle)])
    }
}

extension WireEpisodeState {
    package var json: JSONValue {
        .object([
            "episode": .string(episode), "position": .seconds(position), "duration": .knownSeconds(duration),
            "played": .bool(played), "completedAt": .moment(milliseconds: completedAt), "reason": .text(reason),
        ])
    }
}

extension WireEpisode {
    /// The object that lists of episodes contain.
    var json: JSONValue {
        .object([
            "id": .string(id), "title": .string(title),
            "podcast": .object(["id": .string(podcastID), "title": .string(podcastTitle)]),
            "published": .moment(milliseconds: published), "duration": .knownSeconds(knownDuration),
            "position": .seconds(state.position), "played": .bool(state.played),
            "seen": .moment(milliseconds: firstSeen), "new": .bool(flags & Self.newFlag != 0),
            "gone": .bool(flags & Self.goneFlag != 0),
        ])
    }

    /// The object with all details.
    var detailJSON: JSONValue {
        json.adding([
            "description": .text(description_p), "link": .text(link), "audio": .text(enclosureURL),
            "type": .text(enclosureType), "bytes": .known(enclosureLength), "guid": .text(guid),
            "season": .known(season), "number": .known(number), "explicit": .bool(explicit),
            "completedAt": .moment(milliseconds: state.completedAt), "transcript": .text(transcriptURL),
        ])
    }

    /// The length, measured or else announced; 0 if unknown.
    var knownDuration: Double { state.duration > 0 ? state.duration : duration }
}

extension WirePodcast {
    /// The object with the database’s values.
    package var json: JSONValue { json(unplayed: .integer(Int64(unplayedCount))) }

    /// Returns the object; `unplayed` is null if it isn’t known, as in the podcasts on the stream.
    package func json(unplayed: JSONValue) -> JSONValue {
        .object([
            "id": .string(id), "title": .string(title), "url": .string(url),
            "episodeCount": .integer(Int64(episodeCount)),
            "unplayed": unplayed, "lastRefresh": .moment(milliseconds: lastRefresh),
            "error": errorCode.isEmpty
                ? .null : .object(["code": .string(errorCode), "message": .string(errorMessage)]),
            "author": .text(author), "subscribed": .bool(subscribed), "nextRefresh": .moment(milliseconds: nextRefresh),
            "deletion": .moment(milliseconds: forgetAt),
            "tags": .array(tags.map { .text($0) }), "feedTitle": feedTitle.isEmpty ? .null : .text(feedTitle),
        ])
    }
}

extension WireAlert {
    package var json: JSONValue {
        .object([
            "id": .string(id), "code": .string(code), "title": .string(title), "message": .string(message),
            "severity": .string(severity.word), "actions": .array(actions.map { .string($0) }),
            "owner": .string(owner), "episode": .text(episode), "podcast": .text(podcast),
            "raisedAt": .moment(milliseconds: raisedAt),
        ])
    }
}

extension WireJob {
    package var json: JSONValue {
        .object([
            "id": .string(id), "what": .string(what), "total": .unsigned(UInt64(total)),
            "done": .unsigned(UInt64(done)), "failed": .unsigned(UInt64(failed)),
            "failures": .array(
                failures.map { .object(["name": .string($0.name), "error": $0.failure.json]) }),
            "started": .moment(milliseconds: started), "ended": .moment(milliseconds: ended), "origin": .text(origin),
        ])
    }
}

extension WireQueueEntry {
    /// Returns an entry’s object; `current` is whether the entry is the current one.
    package func json(current: Bool) -> JSONValue {
        .object([
            "id": .string(id), "current": .bool(current), "episode": episode.json,
            "addedAt": .moment(milliseconds: addedAt), "reason": .text(reason),
        ])
    }
}

extension WireQueueState {
    package var json: JSONValue {
        .object([
            "name": .string(name), "revision": .unsigned(revision),
            "entries": .array(entries.map { $0.json(current: $0.id == current) }), "modes": QueueModes(modes).json,
        ])
    }
}

extension WirePlaylist {
    package var json: JSONValue {
        .object([
            "id": .string(id), "name": .text(title), "kind": .string(hasSmart ? "smart" : "manual"),
            "rule": hasSmart ? .text(smart.rule) : .null,
            "sort": hasSmart ? .string((EpisodeOrder(smart.order) ?? .newest).rawValue) : .null,
            "limit": hasSmart ? .unsigned(UInt64(smart.limit)) : .null,
            "addTo": smart.queue.isEmpty ? .null : .text(smart.queue),
            "count": .unsigned(UInt64(items)), "seconds": .seconds(duration), "revision": .unsigned(revision),
            "createdAt": .moment(milliseconds: createdAt),
            "updatedAt": .moment(milliseconds: updatedAt), "continuous": .bool(continuous), "shuffle": .bool(shuffle),
        ])
    }
}

extension WireOutputState {
    package var json: JSONValue {
        .object([
            "chosen": .text(chosen), "inUse": .text(inUse),
            "devices": .array(
                devices.map { .object(["name": .string($0.name), "description": .string($0.description_p)]) }),
        ])
    }
}

extension WireHistoryItem {
    package var json: JSONValue {
        .object([
            "revision": .unsigned(revision), "at": .moment(milliseconds: at), "description": .string(description_p),
            "undone": .bool(undone), "origin": .text(origin), "entries": .integer(Int64(entries)),
        ])
    }
}

extension WireFeedResult {
    package var word: String {
        switch kind {
        case .added: "added"
        case .alreadyThere: "alreadyThere"
        case .updated: "updated"
        case .unchanged: "unchanged"
        case .removed: "removed"
        case .failed: "failed"
        case .checked: "checked"
        case .unknown, .UNRECOGNIZED: "unknown"
        }
    }

    package var json: JSONValue {
        .object([
            // The feeds service has no played marks.
            "url": .string(url), "result": .string(word),
            "podcast": hasPodcast ? podcast.json(unplayed: .null) : .null,
            "newEpisodes": .integer(Int64(newEpisodes)),
            "error": hasFailure ? failure.failure.json["error"] ?? .null : .null,
            "kept": .bool(kept), "passwordChanged": .bool(passwordChanged),
            "warnings": .array(warnings.map { .string($0) }),
        ])
    }
}

extension WireBookmark {
    package var json: JSONValue {
        .object([
            "id": .string(id), "episode": .string(episode), "title": .text(title), "position": .seconds(position),
            "note": .text(note), "createdAt": .moment(milliseconds: createdAt),
        ])
    }
}

extension SettingKey {
    /// A value as JSON: a number if the key holds one, true or false for `on` and `off`, else a string.
    package func json(_ text: String) -> JSONValue {
        switch rule.form {
        case .number, .wholeNumber: Double(text).map { .number($0) } ?? .string(text)
        case .flag: .bool(text == "on")
        default: .string(text)
        }
    }
}

extension WireDownload.State {
    package var word: String {
        switch self {
        case .notDownloaded, .UNRECOGNIZED: "notDownloaded"
        case .queued: "queued"
        case .downloading: "downloading"
        case .paused: "paused"
        case .downloaded: "downloaded"
        case .failed: "failed"
        }
    }

    package var shownWord: String { self == .notDownloaded ? "not downloaded" : word }
}

extension WireDownload {
    package var json: JSONValue {
        .object([
            "episode": .string(episode), "state": .string(state.word), "receivedBytes": .unsigned(receivedBytes),
            "totalBytes": .known(totalBytes), "error": hasError && state == .failed ? error.json : .null,
            "title": .text(title),
            "podcast": .object(["id": .string(podcastID), "title": .string(podcastTitle)]), "path": .text(path),
            "reason": .text(reason), "waitsFor": .text(waitsFor), "attempt": .integer(Int64(attempt)),
            "nextAttempt": .moment(milliseconds: nextAttempt), "requestedAt": .moment(milliseconds: requestedAt),
            "finishedAt": .moment(milliseconds: finishedAt), "note": .text(note),
        ])
    }
}

extension WireDownloadProgress {
    package var json: JSONValue {
        .object([
            "episode": .string(episode), "receivedBytes": .unsigned(receivedBytes),
            "totalBytes": .known(totalBytes), "bytesPerSecond": .number(bytesPerSecond),
        ])
    }
}
