import PodcastModel
package import WireMessages

/// The payloads of the stream as JSON, chosen by topic.
package enum StreamPayload {
    /// The payload of `event`: null for a key that is gone; an object `{"base64"}` for a topic that this version does
    /// not know or a payload that it cannot read, with `"delta":true` if that changes the value before it.
    package static func json(_ event: StreamEvent) -> JSONValue {
        guard event.header.kind != .delete else { return .null }
        if let known = try? known(event) { return known }
        let bytes = JSONValue.string(base64(event.payload))
        return event.header.kind == .delta
            ? .object(["base64": bytes, "delta": .bool(true)]) : .object(["base64": bytes])
    }

    private static func known(_ event: StreamEvent) throws -> JSONValue? {
        let parts = event.topic.parts.map(String.init)
        if parts.count == 3, parts[0] == "live", parts[1] == "downloads" {
            return try WireDownloadProgress(wireBytes: event.payload).json
        }
        guard parts.count >= 3, parts[0] == "stream" else { return nil }
        switch (parts[1], parts[2], parts.count) {
        case ("bus", "service", 4): return json(try WireServiceStatus(wireBytes: event.payload))
        case ("playback", "state", 3): return json(try WirePlaybackState(wireBytes: event.payload))
        case ("playback", "output", 3): return try WireOutputState(wireBytes: event.payload).json
        case ("playback", "states", 3):
            let changed = try WireEpisodeStatesChanged(wireBytes: event.payload)
            return .object(["episodes": .array(changed.episodes.map(JSONValue.string))])
        case ("playback", "episode", 4): return try WireEpisodeState(wireBytes: event.payload).json
        case ("queue", "queue", 4):
            return event.header.kind == .delta
                ? json(try WireQueueDelta(wireBytes: event.payload)) : try WireQueueState(wireBytes: event.payload).json
        case ("queue", "next", 3): return json(try WireQueueNext(wireBytes: event.payload))
        case ("feeds", "podcast", 4): return try WirePodcast(wireBytes: event.payload).json(unplayed: .null)
        case ("feeds", "episodes", 4): return json(try WireEpisodesChanged(wireBytes: event.payload))
        case ("playback", "bookmarks", 4):
            return .array(try WireBookmarks(wireBytes: event.payload).bookmarks.map(\.json))
        case ("downloads", "download", 4): return try WireDownload(wireBytes: event.payload).json
        case (_, "settings", 4): return json(try WireSettingsState(wireBytes: event.payload))
        case ("persistence", "status", 3): return json(try WirePersistenceStatus(wireBytes: event.payload))
        case (_, "alert", 4): return try WireAlert(wireBytes: event.payload).json
        default: return nil
        }
    }

    private static func json(_ status: WireServiceStatus) -> JSONValue {
        .object([
            "name": .string(status.name), "state": .string(status.state.word),
            "generation": .integer(Int64(status.generation)),
        ])
    }

    /// The state as it is on the stream: the anchor, not a position that has already moved on.
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
            "chapter": state.chapter == 0 ? .null : .integer(Int64(state.chapter)),
            "sound": state.hasSound ? state.sound.json : .null, "local": .bool(state.local),
            "skipped": .bool(state.skip), "pausedBy": .text(state.pauseWord),
        ])
    }

    private static func json(_ retry: WireRetryState) -> JSONValue {
        retry.json(in: retry.nextInSeconds).adding(
            "nextMonotonic", retry.nextAt == 0 ? .null : .number(Double(retry.nextAt) / 1e9))
    }

    private static func json(_ sleep: WireSleepState) -> JSONValue {
        .object([
            "endsAt": .moment(milliseconds: sleep.endsAtWall),
            "monotonic": sleep.endsAt == 0 ? .null : .number(Double(sleep.endsAt) / 1e9),
            "bootId": .text(sleep.bootID), "episodes": sleep.episodes == 0 ? .null : .integer(Int64(sleep.episodes)),
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
        let reason: JSONValue =
            switch next.reason {
            case .nothingLoaded: .string("nothingLoaded")
            case .ended: .string("ended")
            case .lastEntry: .string("lastEntry")
            case .noOtherEntry: .string("noOtherEntry")
            case .unknown, .UNRECOGNIZED: .null
            }
        return .object([
            "queue": .string(next.queue), "current": next.hasCurrent ? entry(next.current) : .null,
            "following": next.hasFollowing ? entry(next.following) : .null, "reason": reason,
            "loads": .array(next.loads.map(json)),
        ])
    }

    private static func json(_ load: WireDecidedLoad) -> JSONValue {
        let outcome: JSONValue =
            switch load.outcome {
            case .pending: .string("pending")
            case .accepted: .string("accepted")
            case .refused: .string("refused")
            case .superseded: .string("superseded")
            case .unknown, .UNRECOGNIZED: .null
            }
        return .object([
            "loadId": .string(load.loadID), "queue": .string(load.queue), "entry": .string(load.entry),
            "outcome": outcome, "error": load.hasFailure ? load.failure.json : .null,
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
        case .order(let order): return .object(["order": .array(order.entries.map(JSONValue.string))])
        case nil: return nil
        }
    }

    private static func json(_ change: WireEpisodesChanged) -> JSONValue {
        func list(_ ids: [String]) -> JSONValue { .array(ids.map { .string($0) }) }
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

    /// RFC 4648, section 4, with padding.
    package static func base64(_ bytes: [UInt8]) -> String {
        let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
        var result: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            let bits = (0..<3).reduce(UInt32(0)) {
                $0 << 8 | (start + $1 < bytes.count ? UInt32(bytes[start + $1]) : 0)
            }
            for place in 0..<4 {
                result.append(place <= group.count ? digits[Int(bits >> (18 - 6 * UInt32(place)) & 63)] : 61)
            }
        }
        return String(decoding: result, as: UTF8.self)
    }
}
