import LockstepClient
import PodcastModel

struct DownloadsBoard: Sendable {
    let isCurrent: Bool
    /// The active downloads, then queued, failed, paused and finished ones, the newest first.
    let downloads: [DownloadState]

    init() { (isCurrent, downloads) = (false, []) }

    init(_ state: FleetState) {
        isCurrent = !state.isStale(.downloads)
        downloads = state.downloads.sorted { left, right in
            let (first, second) = (Self.rank(left.status), Self.rank(right.status))
            guard first == second else { return first < second }
            guard left.status == .downloaded, let ended = left.finishedAt, let other = right.finishedAt else {
                return (left.requestedAt, left.episode) < (right.requestedAt, right.episode)
            }
            return (ended, left.episode) > (other, right.episode)
        }
    }

    var isActive: Bool { downloads.contains { $0.status == .downloading || $0.status == .queued } }

    /// Whether there is telemetry for each active download.
    var hasProgressForAll: Bool { downloads.allSatisfy { $0.status != .downloading || $0.isAnnounced } }

    private static func rank(_ status: DownloadState.Status) -> Int {
        switch status {
        case .downloading: 0
        case .queued: 1
        case .failed: 2
        case .paused: 3
        case .downloaded, .notDownloaded: 4
        }
    }

    /// A line for each download, with bars for active ones: at most `columns` wide and `rows` lines.
    func lines(columns: Int, rows: Int) -> [String] {
        guard !downloads.isEmpty else { return [DisplayText.cut(DownloadText.none, to: columns)] }
        let shown = downloads.count > rows ? downloads.prefix(max(0, rows - 1)) : downloads[...]
        var lines = shown.map { line($0, columns: columns) }
        if shown.count < downloads.count {
            lines.append(DisplayText.cut("… and \(downloads.count - shown.count) more", to: columns))
        }
        return lines
    }

    private func line(_ download: DownloadState, columns: Int) -> String {
        let nameWidth = max(8, columns / 3)
        let head = DisplayText.fitted(DownloadText.title(download), to: min(nameWidth, columns)) + "  "
        guard download.status == .downloading else {
            return DisplayText.cut(head + DownloadText.state(download), to: columns)
        }
        let part = DownloadText.part(download)
        let tail = "  " + DownloadText.amount(download) + rate(download)
        let room = columns - DisplayText.width(head) - DisplayText.width(tail) - 5
        let percent = part.map { DisplayText.fitted("\(Int($0 * 100)) %", to: 5, right: true) } ?? "    ?"
        guard room >= 5 else { return DisplayText.cut(head + percent + tail, to: columns) }
        return head + percent + " " + ProgressBar.text(part, columns: room - 1) + tail
    }

    /// `, 2.0 MB/s, 12 s left`.
    private func rate(_ download: DownloadState) -> String {
        guard let bytesPerSecond = download.bytesPerSecond, bytesPerSecond >= 1 else { return "" }
        let speed = ", \(NumberText.bytes(UInt64(min(bytesPerSecond, 1e15))))/s"
        guard let total = download.totalBytes, total > download.receivedBytes else { return speed }
        let left = Double(total - download.receivedBytes) / bytesPerSecond
        return "\(speed), \(TimeText.span(left.rounded(.up))) left"
    }
}

enum DownloadText {
    static let none = "There are no downloads. Add one with `lockstep download add EPISODE`."

    /// The only download that matches an ID, the beginning of one, or a part of a title; nil otherwise.
    static func named(_ text: String, in downloads: [DownloadState]) -> DownloadState? {
        if let download = downloads.first(where: { $0.episode.text == text }) { return download }
        let wanted = text.lowercased()
        let found = downloads.filter { $0.episode.text.hasPrefix(text) || $0.title.lowercased().contains(wanted) }
        return found.count == 1 ? found.first : nil
    }

    /// The title, or the ID of an episode without one.
    static func title(_ download: DownloadState) -> String {
        download.title.isEmpty ? download.episode.text : download.title
    }

    /// The received fraction, 0 to 1; nil if not known.
    static func part(_ download: DownloadState) -> Double? {
        download.totalBytes.map { min(1, Double(download.receivedBytes) / Double($0)) }
    }

    /// `12.3 MB of 27.0 MB`, or the bytes received if the length isn’t known.
    static func amount(_ download: DownloadState) -> String {
        let received = NumberText.bytes(download.receivedBytes)
        return download.totalBytes.map { "\(received) of \(NumberText.bytes($0))" } ?? received
    }

    /// The state with its details and its note: `queued, waits for the network`, `failed: …`.
    static func state(_ download: DownloadState) -> String {
        guard !download.note.isEmpty, download.status != .downloading else { return bareState(download) }
        return "\(Sentence.stopped(bareState(download))) \(download.note)"
    }

    private static func bareState(_ download: DownloadState) -> String {
        let word = download.statusWord
        switch download.status {
        case .queued:
            let waits = download.waitsFor.isEmpty ? "" : ", waits for \(download.waitsFor)"
            return word + (download.receivedBytes > 0 ? ", \(amount(download))" : "") + waits
        case .downloading:
            return word + (part(download).map { " \(Int($0 * 100)) %" } ?? "") + ", \(amount(download))"
        case .paused: return "\(word) at \(amount(download))"
        case .downloaded:
            return "\(word), \(NumberText.bytes(max(download.receivedBytes, download.totalBytes ?? 0)))"
        case .failed(let failure): return "\(word): \(failure.message)"
        case .notDownloaded: return word
        }
    }
}

/// Reports downloads as plain text: a line for each change of a state, and for each tenth.
struct DownloadsNarrator: Sendable {
    private var told: [EpisodeID: (status: DownloadState.Status, tenth: Int, text: String)] = [:]

    private var isFirst = true

    /// Whether there is no download at the beginning.
    mutating func isEmptyAtFirst(_ downloads: [DownloadState]) -> Bool {
        defer { isFirst = false }
        return isFirst && downloads.isEmpty
    }

    /// The downloads with a change to print.
    mutating func news(_ downloads: [DownloadState]) -> [DownloadState] {
        var news: [DownloadState] = []
        for download in downloads {
            let tenth = DownloadText.part(download).map { Int($0 * 10) } ?? 0
            let text = download.status == .downloading ? "" : DownloadText.state(download)
            if let last = told[download.episode], last.status == download.status, last.text == text, last.tenth >= tenth
            {
                continue
            }
            told[download.episode] = (download.status, tenth, text)
            news.append(download)
        }
        let present = Set(downloads.map(\.episode))
        for gone in told.keys.filter({ !present.contains($0) }).sorted() {
            told[gone] = nil
            news.append(DownloadState(without: gone))
        }
        return news
    }

    /// A download as a line: `“A title”: downloading 40 %, 12.3 MB of 27.0 MB`.
    static func line(_ download: DownloadState) -> String {
        Sentence.stopped("\(DisplayText.quoted(DownloadText.title(download))): \(DownloadText.state(download))")
    }
}
