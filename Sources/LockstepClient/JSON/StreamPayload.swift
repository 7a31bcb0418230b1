import FoundationEssentials
import PodcastModel
package import WireMessages

package enum StreamPayload {
    /// The JSON payload of `event`: null for a deleted key; an object `{"base64"}` for an unknown topic or an
    /// unreadable payload, with `"delta":true` if it is a delta.
    package static func json(_ event: StreamEvent) -> JSONValue {
        guard event.header.kind != .delete else { return .null }
        if let known = try? known(event) { return known }
        let bytes = JSONValue.string(Data(event.payload).base64EncodedString())
        return event.header.kind == .delta
            ? .object(["base64": bytes, "delta": .bool(true)]) : .object(["base64": bytes])
    }

    private static func known(_ event: StreamEvent) throws -> JSONValue? {
        let bytes = event.payload
        switch StreamTopic(event.topic) {
        case .service: return json(try WireServiceStatus(wireBytes: bytes))
        case .player: return json(try WirePlaybackState(wireBytes: bytes))
        case .output: return try WireOutputState(wireBytes: bytes).json
        case .episodeStates: return .object(["episodes": list(try WireEpisodeStatesChanged(wireBytes: bytes).episodes)])
        case .episode: return try WireEpisodeState(wireBytes: bytes).json
        case .playSession: return try WirePlaySession(wireBytes: bytes).json
        case .queue:
            return event.header.kind == .delta
                ? json(try WireQueueDelta(wireBytes: bytes)) : try WireQueueState(wireBytes: bytes).json
        case .next: return json(try WireQueueNext(wireBytes: bytes))
        case .playlist: return try WirePlaylist(wireBytes: bytes).json
        case .podcast: return try WirePodcast(wireBytes: bytes).json(unplayed: .null)
        case .episodes: return json(try WireEpisodesChanged(wireBytes: bytes))
        case .inbox:
            let clear = try WireClearInbox(wireBytes: bytes)
            return .object(["episodes": list(clear.episodes), "all": .bool(clear.all)])
        case .bookmarks: return .array(try WireBookmarks(wireBytes: bytes).bookmarks.map(\.json))
        case .download: return try WireDownload(wireBytes: bytes).json
        case .downloadProgress: return try WireDownloadProgress(wireBytes: bytes).json
        case .settings: return json(try WireSettingsState(wireBytes: bytes))
        case .database: return json(try WirePersistenceStatus(wireBytes: bytes))
        case .job: return try WireJob(wireBytes: bytes).json
        case .alert: return try WireAlert(wireBytes: bytes).json
        case nil: return nil
        }
    }

    private static func list(_ texts: [String]) -> JSONValue { .array(texts.map(JSONValue.string)) }

    private static func json(_ status: WireServiceStatus) -> JSONValue {
        .object([
            "name": .string(status.name), "state": .string(status.state.word),
            "generation": .integer(Int64(status.generation)),
        ])
    }

    /// The published state, with the anchor instead of a position extrapolated from it.
    private static func json(_ state: WirePlaybackState) -> JSONValue {
        .object([
            "state": .string(state.status.word), "episode": state.hasEpisode ? state.episode.briefJSON : .null,
            "loadId": .text(state.loadID), "queueEntry": .text(state.queueEntry),
            "queue": .text(state.queue),
            "anchor": state.hasAnchor ? json(state.anchor) : .null, "duration": .knownSeconds(state.duration),
            "speed": .number(state.speed), "volume": .number(state.volume), "output": .text(state.output),
            "silent": .bool(state.nullOutput), "buffering": .bool(state.buffering),
            "error": state.hasError ? state.error.json : .null, "chapters": .array(state.chapters.map(\.json)),
            "revision": .unsigned(state.revision), "willPlay": .bool(state.willPlay),
            "retry": state.hasRetry ? json(state.retry) : .null, "sleep": state.hasSleep ? json(state.sleep) : .null,
            "chapter": .known(state.chapter),
            "sound": state.hasSound ? state.sound.json : .null, "local": .bool(state.local),
            "skipped": .bool(state.skip), "pausedBy": .text(state.pauseWord),
            "playSession": .text(state.playSession),
        ])
    }

    private static func json(_ retry: WireRetryState) -> JSONValue {
        retry.json(in: retry.nextInSeconds).adding("nextMonotonic", monotonic(retry.nextAt))
    }

    private static func monotonic(_ nanoseconds: UInt64) -> JSONValue {
        nanoseconds == 0 ? .null : .number(Double(nanoseconds) / 1e9)
    }

    private static func json(_ sleep: WireSleepState) -> JSONValue {
        .object([
            "endsAt": .moment(milliseconds: sleep.endsAtWall),
            "monotonic": monotonic(sleep.endsAt),
            "bootId": .text(sleep.bootID), "episodes": .known(sleep.episodes),
            "endOfChapter": .bool(sleep.endOfChapter), "fading": .bool(sleep.fading),
        ])
    }

    private static func json(_ state: WireSettingsState) -> JSONValue {
        .object([
            "podcast": .text(state.podcast),
            "settings": .object(
                state.settings.map { setting in
                    let key = SettingKey(rawValue: setting.key)
                    return .init(name: setting.key, value: key?.json(setting.value) ?? .string(setting.value))
                }),
        ])
    }

    private static func json(_ anchor: WireAnchor) -> JSONValue {
        .object([
            "position": .seconds(anchor.position), "running": .bool(anchor.running),
            "at": .moment(milliseconds: anchor.wall), "monotonic": .number(Double(anchor.at) / 1e9),
            "bootId": .string(anchor.bootID), "speed": anchor.speed == 0 ? .null : .number(anchor.speed),
        ])
    }

    private static func json(_ next: WireQueueNext) -> JSONValue {
        func entry(_ entry: WireQueueEntry) -> JSONValue {
            .object(["id": .string(entry.id), "episode": entry.episode.json])
        }
        return .object([
            "queue": .string(next.queue), "current": next.hasCurrent ? entry(next.current) : .null,
            "following": next.hasFollowing ? entry(next.following) : .null,
            "reason": .text(NextState.Reason(next.reason)?.rawValue ?? ""),
            "loads": .array(next.loads.map(json)),
        ])
    }

    private static func json(_ load: WireDecidedLoad) -> JSONValue {
        let outcome =
            switch load.outcome {
            case .pending: "pending"
            case .accepted: "accepted"
            case .refused: "refused"
            case .superseded: "superseded"
            case .unknown, .UNRECOGNIZED: ""
            }
        return .object([
            "loadId": .string(load.loadID), "queue": .string(load.queue), "entry": .string(load.entry),
            "outcome": .text(outcome), "error": load.hasFailure ? load.failure.json : .null,
            "afterLoad": .text(load.afterLoad),
        ])
    }

    private static func json(_ delta: WireQueueDelta) -> JSONValue {
        .object(["revision": .unsigned(delta.revision), "steps": .array(delta.steps.compactMap(json))])
    }

    private static func json(_ step: WireQueueStep) -> JSONValue? {
        func entry(_ insert: WireQueueStep.Insert) -> JSONValue {
            .object([
                "id": .string(insert.entry.id), "episode": insert.entry.episode.json,
                "addedAt": .moment(milliseconds: insert.entry.addedAt), "reason": .text(insert.entry.reason),
            ])
        }
        switch step.step {
        case .insert(let insert):
            return .object(["insert": entry(insert), "after": .text(insert.after)])
        case .remove(let id): return .object(["remove": .string(id)])
        case .update(let update): return .object(["update": entry(update)])
        case .setCurrent(let id): return .object(["current": .text(id)])
        case .order(let order): return .object(["order": list(order.entries)])
        case nil: return nil
        }
    }

    private static func json(_ change: WireEpisodesChanged) -> JSONValue {
        return .object([
            "podcast": .string(change.podcast), "added": list(change.added), "updated": list(change.updated),
            "removed": list(change.removed),
        ])
    }

    private static func json(_ status: WirePersistenceStatus) -> JSONValue {
        .object([
            "incarnation": .text(status.incarnation), "schemaVersion": .integer(Int64(status.schemaVersion)),
            "diskFull": .bool(status.diskFull), "lastBackup": .moment(milliseconds: status.lastBackup),
            "podcasts": .unsigned(status.podcasts), "episodes": .unsigned(status.episodes),
        ])
    }
}
