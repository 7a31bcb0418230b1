import FleetHome
import FoundationEssentials
import LibC
import LockstepClient
import PodcastModel

/// The episodes of the last list that was printed in a terminal, so that `%3` names the episode of its third row.
///
/// The lists are files in the state folder, one for each session of the system (a terminal window, a login, a cron
/// job), so that terminals don’t overwrite each other’s lists.
struct ListedEpisodes: Sendable {
    /// The age, in seconds, after which a list isn’t used any more.
    static let lifetime = 12 * 3_600
    /// The maximum number of rows that are remembered.
    static let limit = 10_000
    /// The maximum number of stored lists; the oldest are deleted.
    static let listLimit = 32

    private let folder: String
    private let file: String
    /// Sessions of another boot may have had the same number.
    private let boot: String

    init(_ home: LockstepHome, session: Int32 = getsid(0), boot: String = SystemClocks.bootID) {
        folder = home.stateFile("lists")
        file = "\(folder)/\(session)"
        self.boot = boot
    }

    /// Stores the rows of a list. A list that can’t be stored is printed nevertheless.
    func remember(_ episodes: [EpisodeID], now: Timestamp = SystemClocks.wall()) {
        do throws(Failure) {
            try LockstepHome.createFolder(folder)
            let header = "\(now.milliseconds) \(boot)"
            let rows = episodes.prefix(Self.limit).map(\.text)
            try SmallFile.replaceWhole(
                file, with: ([header] + rows).joined(separator: "\n") + "\n", isDurable: false)
        } catch { return }
        deleteOld()
    }

    /// The episodes of rows, counted from 1.
    ///
    /// - Throws: `notFound` if no list was printed in this session, it is too old, or it has fewer rows.
    func episodes(
        rows: ClosedRange<Int>, now: Timestamp = SystemClocks.wall()
    ) throws(Failure) -> [EpisodeID] {
        let lines = SmallFile.text(of: file).split(separator: "\n")
        let header = lines.first?.split(separator: " ") ?? []
        let row = rows.lowerBound
        guard header.count == 2, header[1] == boot, let time = Int64(header[0]) else {
            throw Failure(
                .notFound,
                "%\(row) is a row of the last printed list of episodes, but none was printed here. Print one first, such as `lockstep episodes`."
            )
        }
        let age = Double(now.milliseconds - time) / 1_000
        guard (0...Double(Self.lifetime)).contains(age) else {
            throw Failure(
                .notFound,
                "%\(row) is a row of the last printed list of episodes, which is \(TimeText.span(abs(age))) old. Print a list again, such as `lockstep episodes`."
            )
        }
        let count = lines.count - 1
        let ids = lines.indices.contains(rows.upperBound) ? lines[rows].compactMap { EpisodeID(String($0)) } : []
        guard row > 0, ids.count == rows.count else {
            let missing = (1...max(1, count)).contains(row) ? rows.upperBound : row
            throw Failure(
                .notFound,
                "The last printed list has \(NumberText.counted(count, "row")), so there is no row %\(missing).")
        }
        return ids
    }

    private func deleteOld() {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        guard names.count > Self.listLimit else { return }
        let times = names.map { name in
            (
                path: "\(folder)/\(name)",
                time: Int64(SmallFile.text(of: "\(folder)/\(name)").prefix { $0.isNumber }) ?? 0
            )
        }
        for old in times.sorted(by: { $0.time > $1.time }).dropFirst(Self.listLimit) { unlink(old.path) }
    }
}

extension ListedEpisodes {
    /// The commands whose arguments name episodes. In others, such as `tag add`, `%3` is any text.
    private static let commands: [[String]] = [
        ["play"], ["show"], ["why"], ["mark"], ["inbox"], ["download"], ["favourite"], ["favorite"], ["history"],
        ["bookmark"], ["queue", "add"], ["queue", "remove"], ["queue", "move"], ["playlist", "add"],
        ["playlist", "remove"], ["playlist", "move"], ["playlist", "play"],
    ]
    /// The options whose values are any text.
    private static let textOptions: Set<String> = ["--note", "--title", "--where"]

    /// Replaces `%3` in a command line by the ID of the episode in row 3 of the last printed list, and `%3-%7` by those
    /// of five rows.
    ///
    /// - Parameter find: returns the episodes of rows.
    static func resolved(
        _ arguments: [String], _ find: (ClosedRange<Int>) throws(Failure) -> [EpisodeID]
    ) throws(Failure) -> [String] {
        guard commands.contains(where: arguments.starts), !arguments.starts(with: ["bookmark", "note"]) else {
            return arguments
        }
        var result: [String] = []
        for (before, word) in zip([""] + arguments, arguments) {
            if let rows = rows(word), !textOptions.contains(before) {
                result += try find(rows).map(\.text)
            } else {
                result.append(word)
            }
        }
        return result
    }

    /// The rows that `%3` or `%3-%7` names; nil for another word.
    private static func rows(_ word: String) -> ClosedRange<Int>? {
        let ends = word.split(separator: "-", omittingEmptySubsequences: false)
        guard word.first == "%", (1...2).contains(ends.count) else { return nil }
        let numbers = ends.compactMap(row)
        guard numbers.count == ends.count, let first = numbers.first, let last = numbers.last, first <= last else {
            return nil
        }
        return first...last
    }

    private static func row(_ word: Substring) -> Int? {
        let digits = word.hasPrefix("%") ? word.dropFirst() : word
        guard (1...5).contains(digits.count), digits.allSatisfy(\.isASCIIDigit) else { return nil }
        return Int(digits)
    }
}

extension Character {
    fileprivate var isASCIIDigit: Bool { isASCII && isNumber }
}
