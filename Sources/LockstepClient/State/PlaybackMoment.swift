package import PodcastModel
package import WireMessages

// What the player's state means at a moment.

extension WirePlaybackState {
    /// The position at `now`, in seconds, from the anchor. Another boot or machine than the anchor's goes by wall clock.
    package func position(at now: Moment, bootID: String) -> Double {
        PlaybackAnchor(self)?.position(
            at: now, bootID: bootID, duration: EpisodeDuration(seconds: duration)
        ).seconds ?? 0
    }

    /// Seconds until what failed is tried again; 0: it is being tried.
    package func retryWait(at now: Moment, bootID: String) -> Double {
        guard retry.nextAt > 0 else { return 0 }
        guard hasAnchor, anchor.bootID == bootID else { return retry.nextInSeconds }
        return max(0, MonotonicTime(nanoseconds: retry.nextAt).since(now.monotonic) / .seconds(1))
    }

    /// The object that `status --json` prints.
    package func statusJSON(at now: Moment, bootID: String) -> JSONValue {
        let loaded = hasEpisode && status != .idle && status != .unknown
        let position = position(at: now, bootID: bootID)
        return .object([
            "state": .string(status.word), "episode": loaded ? episode.briefJSON : .null,
            "position": loaded ? .seconds(position) : .integer(0),
            "duration": loaded ? .knownSeconds(duration) : .null, "speed": .number(speed), "volume": .number(volume),
            "output": .text(output), "silent": .bool(nullOutput), "buffering": .bool(buffering),
            "error": hasError ? error.json : .null,
            "retry": hasRetry ? retry.json(in: retryWait(at: now, bootID: bootID)) : .null,
            "sleep": sleepJSON(at: now, bootID: bootID), "chapter": chapterJSON(at: position), "local": .bool(local),
            "sound": hasSound ? sound.json : .null, "pausedBy": .text(pauseWord),
            "willPlay": status == .loading ? .bool(willPlay) : .null, "queue": loaded ? .text(queue) : .null,
        ])
    }

    /// The cause of a pause, as a word for programs; empty: it isn’t paused, or a user has paused it.
    package var pauseWord: String {
        switch pausedBy {
        case .sleepTimer where status == .paused: "sleepTimer"
        case .stop where status == .paused: "stop"
        case .soundDevice where status == .paused: "soundDevice"
        default: ""
        }
    }

    /// The sleep timer as commands print it: null, or what is left of it.
    package func sleepJSON(at now: Moment, bootID: String) -> JSONValue {
        guard hasSleep else { return .null }
        return .object([
            "remaining": sleep.remaining(at: now, bootID: bootID).map { .seconds($0) } ?? .null,
            "endsAt": .moment(milliseconds: sleep.endsAtWall),
            "episodes": sleep.episodes == 0 ? .null : .integer(Int64(sleep.episodes)),
            "endOfChapter": .bool(sleep.endOfChapter), "fading": .bool(sleep.fading),
        ])
    }

    private func chapterJSON(at position: Double) -> JSONValue {
        let number = chapters.number(at: position)
        guard number > 0 else { return .null }
        return chapterMembers(number - 1).adding("of", .integer(Int64(chapters.count)))
    }

    /// The chapters as `chapter` prints them.
    package func chaptersJSON(at position: Double) -> JSONValue {
        let current = chapters.number(at: position)
        return .array(
            chapters.indices.map { chapterMembers($0).adding("current", .bool($0 + 1 == current)) })
    }

    private func chapterMembers(_ index: Int) -> JSONValue {
        .object([
            "number": .integer(Int64(index + 1)), "title": .string(chapters[index].title),
            "start": .seconds(chapters[index].start),
            "end": chapters.end(of: index, duration: duration).map { .seconds($0) } ?? .null,
            "url": .text(chapters[index].url),
        ])
    }
}

extension WireRetryState {
    /// With so many seconds to go.
    package func json(in seconds: Double) -> JSONValue {
        .object([
            "attempt": .integer(Int64(attempt)), "of": .integer(Int64(of)), "nextInSeconds": .seconds(seconds),
            "error": hasError ? error.json : .null,
        ])
    }
}

extension WireSoundState {
    package var json: JSONValue {
        .object([
            "gain": .number(gain), "trimSilence": .bool(trimSilence), "boost": .bool(boost),
            "normalise": .bool(normalise),
        ])
    }

    /// The changes to the sound, in words.
    package var words: [String] {
        var words: [String] = []
        if gain != 0 { words.append("gain \(gain > 0 ? "+" : "")\(NumberText.short(gain)) dB") }
        if trimSilence { words.append("trims silence") }
        if boost { words.append("boost") }
        if normalise { words.append("normalised") }
        return words
    }
}

extension [WireChapter] {
    /// The number, from 1, of the chapter at a place in seconds; 0: it is in none.
    package func number(at position: Double) -> Int {
        // An anchor may be that far behind the engine when it tells that a chapter has begun.
        number(at: position, tolerance: 0.05)
    }

    /// The end of the chapter of this index, in seconds; nil: unknown.
    package func end(of index: Int, duration: Double) -> Double? {
        if self[index].end > self[index].start { return self[index].end }
        if index + 1 < count { return self[index + 1].start }
        return duration > self[index].start ? duration : nil
    }
}
