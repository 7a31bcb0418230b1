import ArgumentParser
import BusKit
import LockstepClient
import PodcastModel
import WireMessages

struct QueueUndo: LockstepCommand {
    static let configuration = CommandConfiguration(commandName: "undo", abstract: "Undo the last change.")
    @OptionGroup var queue: QueueOption
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.stepThroughHistory(of: queue, "Undone", else: "there is nothing to undo") {
            $0.undo.fromRevision = $1
        }
    }
}

struct QueueRedo: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "redo", abstract: "Redo the change that was undone last.")
    @OptionGroup var queue: QueueOption
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.stepThroughHistory(of: queue, "Done again", else: "there is nothing to redo") {
            $0.redo.fromRevision = $1
        }
    }
}

extension CommandContext {
    /// Undoes or redoes one change from the revision that is shown now, and says which.
    fileprivate func stepThroughHistory(
        of queue: QueueOption, _ done: String, else nothing: String,
        _ build: @Sendable (inout WireQueueRequest, UInt64) -> Void
    ) async throws {
        try await withSession { session in
            let revision = try await session.view(of: [.queue]).queue(queue.known).revision
            let reply = try await session.queue(named: queue.known) { build(&$0, revision) }
            try output.change(
                reply.json,
                reply.changed ? "\(done): \(Sentence.stopped(reply.description_p))" : "No change: \(nothing).")
        }
    }
}

struct QueueHistory: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "history", abstract: "Show the last changes, the newest first.")
    @Option(parsing: .unconditional, help: "How many.") var limit: UInt32 = 20
    @OptionGroup var queue: QueueOption
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.withSession { session in
            let reply = try await session.queue(named: queue.known) { $0.history.limit = limit }
            var table = TextTable([
                .init(heading: "revision", right: true), .init(heading: "when (UTC)"),
                .init(heading: "what", flexible: true), .init(heading: "by"), .init(heading: "entries", right: true),
            ])
            for item in reply.history {
                table.add([
                    "\(item.revision)", TimeText.minute(milliseconds: item.at),
                    item.description_p + (item.undone ? " (undone)" : ""), CommandOrigin(item.origin).name,
                    "\(item.entries)",
                ])
            }
            try context.output.value(
                .array(reply.history.map(\.json)),
                lines: table.isEmpty ? ["Nothing has changed yet."] : table.lines(width: Output.terminalWidth))
        }
    }
}

struct QueueRestore: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore", abstract: "Restore an earlier revision of the queue; this can be undone.")
    @Argument(help: "A revision from `lockstep queue history`.") var revision: UInt64
    @OptionGroup var queue: QueueOption
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.withSession { session in
            let reply = try await session.queue(named: queue.known) { $0.restore.revision = revision }
            try context.output.change(
                reply.json,
                reply.changed
                    ? "\(queue.shownName) is as it was at revision \(revision): \(reply.description_p). `lockstep queue undo\(queue.argument)` undoes that."
                    : "No change: it is as it was at revision \(revision) already.")
        }
    }
}
