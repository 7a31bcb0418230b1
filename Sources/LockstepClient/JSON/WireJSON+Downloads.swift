import PodcastModel
package import WireMessages

extension WireDownload.State {
    /// The word for the state.
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

    /// As sentences say it.
    package var shownWord: String { self == .notDownloaded ? "not downloaded" : word }
}

extension WireDownload {
    /// As `downloads` prints it.
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
