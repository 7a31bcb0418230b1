import BusKit
import OwnerKit
import PodcastModel
import WireMessages

extension DownloadsMachine {
    /// Answers why the file of an episode is there, or is not.
    static func explain(_ sentences: [String], to command: Command, _ effects: inout Effects) {
        var reply = WireDownloadsReply()
        reply.why = sentences
        effects.append(.reply(command.id, .success(reply.wireBytes)))
    }

    /// Why an episode was never downloaded, as the library has it; nil: it isn’t in the library.
    static func neverRequested(_ episode: WireEpisode?) -> String {
        if let episode {
            if episode.enclosureURL.isEmpty { return "It has no audio that could be downloaded." }
            if WebAddress(episode.enclosureURL)?.isFile ?? false {
                return "It is a file on this machine; there is nothing to download."
            }
        }
        return "It was never downloaded: nobody has asked for it, and no rule."
    }

    /// Why the file of an episode is there, or is not, in sentences.
    func why(_ episode: String, now: Moment) -> [String] {
        guard let download = store.current.downloads[episode] else {
            guard let past = store.current.past[episode] else { return [Self.neverRequested(nil)] }
            let state = past.unfinished ? "It is not downloaded; its download was" : "It is not downloaded any more:"
            return ["\(state) \(past.reason)."]
        }
        let state = download.state == .queued ? "to be downloaded" : download.state.word
        var sentences = ["It is \(state): \(download.reason)."]
        switch download.state {
        case .failed:
            let request = download.automatic ? "wanted \(download.reason)" : download.reason
            sentences = ["Its download failed: \(download.error.message)", "It was \(request)."]
        case .queued:
            let wait = max(0, (download.nextAttempt - now.wall.milliseconds) / 1_000)
            if !download.waitsFor.isEmpty {
                sentences.append("It waits for \(download.waitsFor)\(download.waitsFor.hasSuffix(".") ? "" : ".")")
            }
            if wait > 0 { sentences.append("The next attempt is in \(wait) s.") }
            if download.waitsFor.isEmpty, wait == 0 { sentences.append("It waits for its turn.") }
        case .downloaded:
            if files.absence(of: download, in: store.current) != nil {
                sentences.append("Its file is out of reach: perhaps a disk is not there.")
            }
            sentences += rules.reasons(for: download, in: store.current)
        default: break
        }
        if !download.note.isEmpty, download.state != .downloading { sentences.append(download.note) }
        return sentences
    }
}
