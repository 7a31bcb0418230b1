import BusKit
import LibC
import NIOConcurrencyHelpers
package import PodcastModel
import WireMessages

/// Quarantines work that crashes its process repeatedly, so that no stored work keeps a service from running.
///
/// A small file lists the running work: a line is appended when work begins or ends, and a large file is rewritten. Work
/// that ran when the process crashed is suspect in the next process: it runs while no other suspect does, and after
/// `crashLimit` crashes it is refused until it is released, or until `pause` has passed, because it may have run by
/// coincidence. Completed work is no longer suspect, whatever its outcome. A crash counts if the supervisor reports that
/// the previous process crashed or hung, and the work had begun at most `window` earlier; a process that was killed from
/// outside doesn’t count.
package final class CrashLoopQuarantine: Sendable {
    /// The environment variable with the end of the previous process: `previousCrash`, or any other text.
    package static let previousEndVariable = "LOCKSTEP_PREVIOUS_END"
    /// The previous process crashed, or was killed because it hung.
    package static let previousCrash = "crash"
    /// The number of crashes after which work is quarantined.
    static let crashLimit = 2
    /// The time after its start, in seconds, within which a crash counts against work.
    static let window: Int64 = 600
    /// The time after its last crash at which quarantined work is retried once, in seconds.
    static let pause: Int64 = 86_400
    /// The maximum number of recorded suspects.
    static let suspectLimit = 256
    /// The size at which the file is rewritten, in bytes.
    static let fileLimit = 256 << 10

    /// The record of one piece of work. Times are monotonic, in seconds.
    private struct Record: Sendable {
        var crashes = 0
        var crashedAt: Int64 = 0
        var begunAt: Int64?
        /// The number of running pieces of work with this key.
        var count = 0
        var isRunningSuspect: Bool { crashes > 0 && count > 0 }
    }

    private struct Waiting: Sendable {
        var number: UInt64
        var key: String
        var start: @Sendable () -> Void
        var postpone: @Sendable () -> Void
        var refuse: @Sendable () -> Void
    }

    private struct State: Sendable {
        var records: [String: Record] = [:]
        var keys: [UInt64: String] = [:]
        /// The suspects that wait for the running one, in order.
        var waiting: [Waiting] = []
        /// The descriptor for appended lines; −1 if the file must be rewritten first.
        var file: Int32 = -1
        var size = 0
    }

    private let path: String
    private let injected: Set<Substring>
    private let clock: @Sendable () -> MonotonicTime
    private let state: NIOLockedValueBox<State>

    package convenience init(_ context: ServiceContext) {
        #if DEBUG
        // The keys of work that crashes the process when it begins, separated by commas.
        let injected = context.environment["LOCKSTEP_CRASH_INJECTION"] ?? ""
        #else
        let injected = ""
        #endif
        self.init(
            path: context.home.runFile("\(context.name.text).work"),
            hasCrashed: context.environment[Self.previousEndVariable] == Self.previousCrash, injected: injected)
    }

    init(
        path: String, hasCrashed: Bool, injected: String = "",
        clock: @escaping @Sendable () -> MonotonicTime = { SystemClocks.monotonic() }
    ) {
        self.path = path
        self.injected = Set(injected.split(separator: ","))
        self.clock = clock
        let text = String(decoding: (try? SmallFile.contents(path, limit: 2 * Self.fileLimit)) ?? [], as: UTF8.self)
        let suspects = Self.suspects(in: text, hasCrashed: hasCrashed, now: Self.seconds(clock()))
        state = NIOLockedValueBox(State(records: suspects))
        // The work of the last process counts now, and must not count again in the next one.
        state.withLockedValue { rewrite(&$0) }
    }

    deinit {
        state.withLockedValue { state in
            if state.file >= 0 { close(state.file) }
        }
    }

    /// The failure of refused work.
    package static func refusal(of what: String, by service: String) -> Failure {
        Failure(
            .quarantined, "The \(service) service crashed \(crashLimit) times over \(what), so it was set aside.")
    }

    // MARK: - Work

    /// Calls `start` as soon as the work may begin: at once, or for a suspect when no other is running; or `refuse`, if
    /// it is quarantined. They are called with a lock held, and must return at once without calling this object.
    ///
    /// - Parameters:
    ///   - number: the ID of this piece of work for `end`.
    ///   - key: the subject of the work, the same in every process.
    ///   - postpone: called once if the work has to wait for another suspect.
    package func begin(
        _ number: UInt64, _ key: String, start: @escaping @Sendable () -> Void,
        postpone: @escaping @Sendable () -> Void = {}, refuse: @escaping @Sendable () -> Void
    ) {
        state.withLockedValue { state in
            let key = String(key.prefix(200).map { $0.isNewline ? " " : $0 })
            admit(Waiting(number: number, key: key, start: start, postpone: postpone, refuse: refuse), &state)
        }
    }

    /// Records that the work has ended, or won’t begin. Unknown work is ignored.
    package func end(_ number: UInt64) {
        state.withLockedValue { state in
            state.waiting.removeAll { $0.number == number }
            guard let key = state.keys.removeValue(forKey: number) else { return }
            state.records[key]?.count -= 1
            if state.records[key]?.count == 0 {
                state.records[key] = nil
                save(key, &state)
            }
            let waiting = state.waiting
            state.waiting = []
            for work in waiting { admit(work, &state, isPostponed: true) }
        }
    }

    /// Permits one more attempt at work that is requested again, unless it crashed the process less than `pause` ago.
    package func release(_ key: String, after pause: Duration = .zero) {
        state.withLockedValue { state in
            guard let record = state.records[key], record.crashes >= Self.crashLimit,
                Self.seconds(clock()) - record.crashedAt >= pause.components.seconds
            else { return }
            state.records[key]?.crashes = Self.crashLimit - 1
            save(key, &state)
        }
    }

    private func admit(_ work: Waiting, _ state: inout State, isPostponed: Bool = false) {
        let now = Self.seconds(clock())
        var record = state.records[work.key] ?? Record()
        if record.crashes >= Self.crashLimit, now - record.crashedAt >= Self.pause {
            record.crashes = Self.crashLimit - 1
        }
        guard record.crashes < Self.crashLimit else { return work.refuse() }
        let isBlocked = record.crashes > 0 && state.records.contains { $0.key != work.key && $0.value.isRunningSuspect }
        guard !isBlocked else {
            state.waiting.append(work)
            if !isPostponed { work.postpone() }
            return
        }
        record.count += 1
        let isRunning = record.begunAt != nil
        record.begunAt = record.begunAt ?? now
        state.records[work.key] = record
        state.keys[work.number] = work.key
        if !isRunning { save(work.key, &state) }
        if injected.contains(work.key[...]) { abort() }
        work.start()
    }

    // MARK: - The file

    /// Appends the current record of a key.
    private func save(_ key: String, _ state: inout State) {
        let line = Array(Self.line(key, state.records[key] ?? Record()).utf8)
        if state.file >= 0, state.size + line.count <= Self.fileLimit {
            state.size += line.count
            if write(state.file, line, line.count) == line.count { return }
        }
        rewrite(&state)
    }

    /// Rewrites the file. A failure is retried with the next change.
    private func rewrite(_ state: inout State) {
        if state.file >= 0 { close(state.file) }
        state.file = -1
        let text = state.records.sorted { $0.key < $1.key }.map(Self.line).joined()
        // The file must survive this process only, not the system.
        do throws(Failure) { try SmallFile.replaceWhole(path, with: text, isDurable: false) } catch { return }
        state.size = text.utf8.count
        state.file = open(path, O_WRONLY | O_APPEND | O_CLOEXEC)
    }

    /// The line of a key: its crashes, the time of the last one, the start time (−1: not running), and the key. The
    /// last line of a key counts.
    private static func line(_ key: String, _ record: Record) -> String {
        "\(record.crashes) \(record.crashedAt) \(record.begunAt ?? -1) \(key)\n"
    }

    private static func suspects(in text: String, hasCrashed: Bool, now: Int64) -> [String: Record] {
        var suspects: [String: Record] = [:]
        for line in text.split(separator: "\n") {
            let fields = line.split(separator: " ", maxSplits: 3)
            guard fields.count == 4, let crashes = Int(fields[0]), let crashedAt = Int64(fields[1]),
                let begunAt = Int64(fields[2])
            else { continue }
            // After a reboot the clock has restarted, but the file may remain: the crash was earlier.
            var record = Record(crashes: max(0, crashes), crashedAt: (0...now).contains(crashedAt) ? crashedAt : 0)
            if hasCrashed, begunAt >= 0, (0...window).contains(now - begunAt) {
                record.crashes += 1
                record.crashedAt = now
            }
            suspects[String(fields[3])] = record.crashes > 0 ? record : nil
        }
        guard suspects.count > suspectLimit else { return suspects }
        let newest = suspects.sorted { ($0.value.crashedAt, $0.key) > ($1.value.crashedAt, $1.key) }
        return Dictionary(uniqueKeysWithValues: newest.prefix(suspectLimit).map { ($0.key, $0.value) })
    }

    private static func seconds(_ time: MonotonicTime) -> Int64 { Int64(time.nanoseconds / 1_000_000_000) }
}
