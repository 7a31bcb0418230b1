import EngineDouble
import LockstepClient
import PlaybackService
import PodcastModel
import SwiftProtobuf
import WireMessages

/// The audio sources of the simulation’s episodes and their faults.
struct SimulatedSources {
    /// The fault of an episode’s audio.
    enum Fault: CaseIterable {
        case none
        /// The file can’t be decoded.
        case broken
        /// The server no longer has the audio.
        case gone
        /// The server is too busy.
        case busy
        /// The connection ends early.
        case cut
        /// The server never responds.
        case silent
        /// No more data arrives.
        case stalls
        /// The downloaded file is missing.
        case missing
    }

    /// The length of a whole episode, in seconds.
    static let length = 600.0

    private(set) var episodes: [String: WireEpisode] = [:]
    private var faults: [AudioSource: Fault] = [:]
    /// The sources whose faults are temporary.
    private var temporary: [(source: AudioSource, fault: Fault)] = []
    /// The episodes that are downloaded.
    private var downloads: [(episode: String, source: AudioSource)] = []

    init(count: Int, random: inout SeededGenerator) throws {
        for number in 1...count {
            let id = EpisodeID.derived(from: "simulated/\(number)").text
            let isStream = random.below(2) == 0
            let episode = WireEpisode.with {
                $0.id = id
                $0.title = "Episode \(100 + number)"
                $0.enclosureURL =
                    isStream ? "http://server.test/audio/\(number).mp3" : "file:///audio/\(number).mp3"
                $0.duration = Self.length
            }
            episodes[id] = episode
            let source = try AudioSource(enclosure: episode.enclosureURL)
            faults[source] = Fault.none
            if isStream, random.below(2) == 0 { download(id, number) }
            guard random.below(3) == 0 else { continue }
            let fault: Fault = isStream ? [.gone, .busy, .cut, .silent, .stalls][random.below(5)] : .broken
            if isStream, random.below(2) == 0 {
                temporary.append((source, fault))
            } else {
                faults[source] = fault
            }
        }
    }

    /// Downloads an episode; the file has the same audio as the stream.
    private mutating func download(_ id: String, _ number: Int) {
        let path = "/downloads/\(number).mp3"
        downloads.append((id, .file(path: path)))
        faults[.file(path: path)] = Fault.none
        episodes[id]?.download.state = .downloaded
        episodes[id]?.download.path = path
        let tag = Self.tag(of: episodes[id]?.enclosureURL ?? "")
        episodes[id]?.download.etag = tag
    }

    /// The server’s ETag for its audio.
    static func tag(of url: String) -> String { "\"\(url)\"" }

    /// The current content of all sources, for a new engine.
    func files(_ random: inout SeededGenerator) -> [AudioSource: SimulatedEngine.Audio] {
        var files: [AudioSource: SimulatedEngine.Audio] = [:]
        for source in faults.keys.sorted(by: { $0.description < $1.description }) {
            files[source] = audio(source, &random)
        }
        return files
    }

    /// The current content of a source.
    func audio(_ source: AudioSource, _ random: inout SeededGenerator) -> SimulatedEngine.Audio {
        var audio = SimulatedEngine.Audio(length: Self.length)
        switch faults[source] ?? .none {
        case .none: break
        case .broken: return .broken(Failure(.decoderFailed, "\(source) contains no playable audio."))
        case .gone: return .broken(Failure(.episodeUnavailable, "HTTP 404 for \(source)."))
        case .busy: return .broken(Failure(.streamFailed, "HTTP 503 for \(source)."))
        case .cut:
            audio = SimulatedEngine.Audio(length: Double(random.below(500)), declared: Self.length, cut: true)
        case .silent: audio.opens = false
        case .stalls: audio.stalls = true
        case .missing: return .broken(Failure(.fileMissing, "The file \(source) doesn’t exist."))
        }
        return audio
    }

    /// Whether a file exists.
    func exists(_ path: String) -> Bool { faults[.file(path: path)] != .missing }

    func fault(of address: String) -> Fault {
        (try? AudioSource(enclosure: address)).flatMap { faults[$0] } ?? .none
    }

    /// Changes the fault of a random source whose faults are temporary.
    mutating func change(_ random: inout SeededGenerator) -> AudioSource? {
        guard !temporary.isEmpty else { return nil }
        let (source, fault) = temporary[random.below(temporary.count)]
        faults[source] = faults[source] == Fault.none ? fault : Fault.none
        return source
    }

    /// Deletes, breaks, truncates or restores a downloaded file. The library learns of the change later.
    mutating func changeDownload(_ random: inout SeededGenerator) -> AudioSource? {
        guard !downloads.isEmpty else { return nil }
        let (episode, source) = downloads[random.below(downloads.count)]
        let isWhole = faults[source] == Fault.none
        faults[source] = isWhole ? [.missing, .broken, .cut][random.below(3)] : Fault.none
        let isKnownToBeGone = faults[source] == .missing && random.below(2) == 0
        episodes[episode]?.download.state = isKnownToBeGone ? .notDownloaded : .downloaded
        return source
    }
}
