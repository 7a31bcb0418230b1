import BusKit
import LockstepClient
import PodcastModel
import WireMessages

/// The downloads as they stand and go on: the stream's states, and the telemetry that is ahead of them. Pure.
struct DownloadsBoard: Sendable {
    private var view = FleetView()
    private var progress: [String: WireDownloadProgress] = [:]

    /// Knows nothing yet.
    init() {}

    /// The stream, or telemetry, has news.
    ///
    /// - Returns: whether they concern the downloads.
    mutating func apply(_ update: ReplicaUpdate) -> Bool {
        if case .live(let event) = update {
            guard event.topic.text.hasPrefix("live/\(ServiceName.downloads)/"),
                let news = try? WireDownloadProgress(wireBytes: event.payload),
                view.downloads[news.episode]?.state == .downloading
            else { return false }
            progress[news.episode] = news
            return true
        }
        let changes = view.apply(update)
        var concerns = false
        for change in changes {
            switch change {
            case .download(let episode):
                if view.downloads[episode]?.state != .downloading { progress[episode] = nil }
                concerns = true
            case .everything, .connection, .service(.downloads): concerns = true
            default: break
            }
        }
        return concerns
    }

    /// Whether what it shows is what holds.
    var isCurrent: Bool { view.connection == .live && !view.isStale(.downloads) }

    /// Whether bytes come or will come by themselves.
    var isActive: Bool { view.downloads.values.contains { $0.state == .downloading || $0.state == .queued } }

    /// Whether each download under way has told how far it is.
    var isTold: Bool { view.downloads.values.allSatisfy { $0.state != .downloading || progress[$0.episode] != nil } }

    /// The downloads: what comes, what waits, what needs somebody, then what is there, the newest first.
    var ordered: [WireDownload] {
        view.downloads.values.map { download in
            var now = download
            if let news = progress[download.episode], download.state == .downloading {
                now.receivedBytes = max(now.receivedBytes, news.receivedBytes)
                if news.totalBytes > 0 { now.totalBytes = news.totalBytes }
            }
            return now
        }.sorted { left, right in
            let (first, second) = (Self.rank(left.state), Self.rank(right.state))
            guard first == second else { return first < second }
            guard left.state == .downloaded else {
                return (left.requestedAt, left.episode) < (right.requestedAt, right.episode)
            }
            return (left.finishedAt, left.episode) > (right.finishedAt, right.episode)
        }
    }

    private static func rank(_ state: WireDownload.State) -> Int {
        switch state {
        case .downloading: 0
        case .queued: 1
        case .failed: 2
        case .paused: 3
        default: 4
        }
    }

    /// A line for each download, with bars for those under way: at most `columns` wide and `rows` many.
    func lines(columns: Int, rows: Int) -> [String] {
        let downloads = ordered
        guard !downloads.isEmpty else { return [DisplayText.cut(DownloadText.none, to: columns)] }
        let shown = downloads.count > rows ? downloads.prefix(max(0, rows - 1)) : downloads[...]
        var lines = shown.map { line($0, columns: columns) }
        if shown.count < downloads.count {
            lines.append(DisplayText.cut("… and \(downloads.count - shown.count) more", to: columns))
        }
        return lines
    }

    private func line(_ download: WireDownload, columns: Int) -> String {
        let title = DisplayText.sanitised(download.title.isEmpty ? download.episode : download.title)
        let nameWidth = max(8, columns / 3)
        let head = DisplayText.fitted(title, to: min(nameWidth, columns)) + "  "
        guard download.state == .downloading else {
            return DisplayText.cut(head + DownloadText.state(download), to: columns)
        }
        let part = DownloadText.part(download)
        let tail = "  " + DownloadText.amount(download) + rate(download)
        let room = columns - DisplayText.width(head) - DisplayText.width(tail) - 5
        let percent = part.map { DisplayText.fitted("\(Int($0 * 100)) %", to: 5, right: true) } ?? "    ?"
        guard room >= 5 else { return DisplayText.cut(head + percent + tail, to: columns) }
        return head + percent + " " + ProgressBar.text(part, columns: room - 1) + tail
    }

    /// How fast it comes, and how long it will take.
    private func rate(_ download: WireDownload) -> String {
        guard let news = progress[download.episode], news.bytesPerSecond >= 1 else { return "" }
        let speed = ", \(NumberText.bytes(UInt64(min(news.bytesPerSecond, 1e15))))/s"
        guard download.totalBytes > download.receivedBytes else { return speed }
        let left = Double(download.totalBytes - download.receivedBytes) / news.bytesPerSecond
        return "\(speed), \(TimeText.span(left.rounded(.up))) left"
    }
}

/// Downloads in words.
enum DownloadText {
    static let none = "There are no downloads. Add one with `lockstep download add EPISODE`."

    /// The one download that an id, the beginning of one, or a part of a title means.
    static func named(_ text: String, in downloads: [String: WireDownload]) -> WireDownload? {
        if let download = downloads[text] { return download }
        let wanted = text.lowercased()
        let found = downloads.values.filter {
            $0.episode.hasPrefix(text) || $0.title.lowercased().contains(wanted)
        }
        return found.count == 1 ? found.first : nil
    }

    /// How much of it has come, 0 to 1; nil: not known.
    static func part(_ download: WireDownload) -> Double? {
        guard download.totalBytes > 0 else { return nil }
        return min(1, Double(download.receivedBytes) / Double(download.totalBytes))
    }

    /// `12.3 MB of 27.0 MB`, or what has come while the whole is not known.
    static func amount(_ download: WireDownload) -> String {
        let received = NumberText.bytes(download.receivedBytes)
        return download.totalBytes > 0 ? "\(received) of \(NumberText.bytes(download.totalBytes))" : received
    }

    /// The state, what belongs to it, and what people should know of it: `queued, waits for the network`, `failed: …`.
    static func state(_ download: WireDownload) -> String {
        guard !download.note.isEmpty, download.state != .downloading else { return bareState(download) }
        return "\(Sentence.stopped(bareState(download))) \(DisplayText.sanitised(download.note))"
    }

    private static func bareState(_ download: WireDownload) -> String {
        let word = download.state.shownWord
        switch download.state {
        case .queued:
            let waits = download.waitsFor.isEmpty ? "" : ", waits for \(DisplayText.sanitised(download.waitsFor))"
            return word + (download.receivedBytes > 0 ? ", \(amount(download))" : "") + waits
        case .downloading:
            return word + (part(download).map { " \(Int($0 * 100)) %" } ?? "") + ", \(amount(download))"
        case .paused: return "\(word) at \(amount(download))"
        case .downloaded:
            return "\(word), \(NumberText.bytes(max(download.receivedBytes, download.totalBytes)))"
        case .failed: return "\(word): \(DisplayText.sanitised(download.error.message))"
        case .notDownloaded, .UNRECOGNIZED: return word
        }
    }
}

/// The downloads as lines of words: one for each change of a state, and one for each tenth that has come.
struct DownloadsNarrator: Sendable {
    private var told: [String: (state: WireDownload.State, tenth: Int, text: String)] = [:]

    /// Has said nothing yet.
    init() {}

    /// The downloads that have something new to say.
    mutating func news(_ downloads: [WireDownload]) -> [WireDownload] {
        var news: [WireDownload] = []
        let present = Set(downloads.map(\.episode))
        for download in downloads {
            let tenth = DownloadText.part(download).map { Int($0 * 10) } ?? 0
            let text = download.state == .downloading ? "" : DownloadText.state(download)
            let last = told[download.episode]
            guard last == nil || last?.state != download.state || last?.text != text || (last?.tenth ?? 0) < tenth
            else {
                continue
            }
            told[download.episode] = (download.state, tenth, text)
            news.append(download)
        }
        for gone in told.keys.filter({ !present.contains($0) }).sorted() {
            told[gone] = nil
            var download = WireDownload()
            download.episode = gone
            news.append(download)
        }
        return news
    }

    /// A download in a line: `“A title”: downloading 40 %, 12.3 MB of 27.0 MB`.
    static func line(_ download: WireDownload) -> String {
        let title = DisplayText.sanitised(download.title.isEmpty ? download.episode : download.title)
        return Sentence.stopped("“\(title)”: \(DownloadText.state(download))")
    }
}
