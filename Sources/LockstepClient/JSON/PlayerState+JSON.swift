public import PodcastModel
import WireMessages

// The JSON representation of the player (`protocols/cli.md`).

extension PlayerState {
    /// The object that `lockstep status --json` documents.
    public func json(at moment: Moment = .now) -> JSONValue {
        let loaded = wire.hasEpisode && wire.status != .idle && wire.status != .unknown
        let position = position(at: moment)
        return .object([
            "state": .string(wire.status.word), "episode": loaded ? wire.episode.briefJSON : .null,
            "position": loaded ? .seconds(position) : .integer(0),
            "duration": loaded ? .knownSeconds(wire.duration) : .null, "speed": .number(wire.speed),
            "volume": .number(wire.volume), "output": .text(wire.output), "silent": .bool(wire.nullOutput),
            "buffering": .bool(wire.buffering), "error": wire.hasError ? wire.error.json : .null,
            "retry": wire.hasRetry ? wire.retry.json(in: retryWait(at: moment)) : .null,
            "sleep": sleepJSON(at: moment), "chapter": chapterJSON(at: position), "local": .bool(wire.local),
            "sound": wire.hasSound ? wire.sound.json : .null, "pausedBy": .text(wire.pauseWord),
            "willPlay": wire.status == .loading ? .bool(wire.willPlay) : .null,
            "queue": loaded ? .text(wire.queue) : .null,
        ])
    }

    /// The value that `lockstep sleep --json` documents; null if no timer is set.
    package func sleepJSON(at moment: Moment = .now) -> JSONValue {
        guard wire.hasSleep else { return .null }
        return .object([
            "remaining": wire.sleep.remaining(at: moment, bootID: SystemClocks.bootID).map { .seconds($0) } ?? .null,
            "endsAt": .moment(milliseconds: wire.sleep.endsAtWall), "episodes": .known(wire.sleep.episodes),
            "endOfChapter": .bool(wire.sleep.endOfChapter), "fading": .bool(wire.sleep.fading),
        ])
    }

    private func chapterJSON(at position: Double) -> JSONValue {
        guard let index = chapter(atPosition: position) else { return .null }
        return chapterJSON(index).adding("of", .integer(Int64(wire.chapters.count)))
    }

    /// The array that `lockstep chapter list --json` documents.
    package func chaptersJSON(at moment: Moment = .now) -> JSONValue {
        let current = chapter(at: moment)
        return .array(wire.chapters.indices.map { chapterJSON($0).adding("current", .bool($0 == current)) })
    }

    private func chapterJSON(_ index: Int) -> JSONValue {
        let chapter = wire.chapters[index]
        return .object([
            "number": .integer(Int64(index + 1)), "title": .string(chapter.title), "start": .seconds(chapter.start),
            "end": wire.chapters.end(of: index, duration: wire.duration).map { .seconds($0) } ?? .null,
            "url": .text(chapter.url),
        ])
    }
}

extension WirePlaybackState {
    /// The cause of a pause as an identifier; empty if playback isn’t paused, or a user paused it.
    var pauseWord: String {
        switch pausedBy {
        case .sleepTimer where status == .paused: "sleepTimer"
        case .stop where status == .paused: "stop"
        case .soundDevice where status == .paused: "soundDevice"
        default: ""
        }
    }
}

extension WireRetryState {
    /// Returns the retry, which begins after this number of seconds.
    func json(in seconds: Double) -> JSONValue {
        .object([
            "attempt": .integer(Int64(attempt)), "of": .integer(Int64(of)), "nextInSeconds": .seconds(seconds),
            "error": hasError ? error.json : .null,
        ])
    }
}

extension WireSoundState {
    var json: JSONValue {
        .object([
            "gain": .number(gain), "trimSilence": .bool(trimSilence), "boost": .bool(boost),
            "normalise": .bool(normalise),
        ])
    }
}
