import ArgumentParser
import LockstepClient
import PodcastModel

struct SetOutput: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "output", abstract: "List the sound devices, or choose one.")
    @Argument(help: "A device’s name, a part of one, or `default`; without it, the devices are listed.")
    var device: String?
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.withFleet(observing: .parts([.output])) { fleet in
            let devices: OutputState
            do throws(Failure) { devices = try await fleet.player.outputs() } catch {
                // Where they can't be listed now, they are shown as they were seen last.
                guard let seen = try await fleet.current([.output]).output else { throw error }
                devices = seen
            }
            guard let device else { return try Self.list(devices, context.output) }
            let answer = try await fleet.player.setOutput(try Self.resolve(device, in: devices))
            let chosen = answer.value.chosen ?? "the system’s default"
            try context.output.change(
                answer.value.json,
                answer.changed ? "The output is \(chosen)." : "No change: the output is \(chosen) already.")
        }
    }

    private static func list(_ state: OutputState, _ output: Output) throws {
        var table = TextTable([
            .init(heading: ""), .init(heading: "output"), .init(heading: "what it is", flexible: true),
        ])
        table.add([state.chosen == nil ? "*" : "", "default", "The system’s default"])
        for device in state.devices {
            table.add([device.name == state.chosen ? "*" : "", device.name, device.title])
        }
        if let chosen = state.chosen, !state.devices.contains(where: { $0.name == chosen }) {
            table.add(["*", chosen, "Not available now"])
        }
        try output.value(state.json, lines: table.lines(width: Output.terminalWidth))
    }

    /// The name of the device that a text means: its name, or a part of a name or description that no other has; nil: the
    /// system’s default.
    static func resolve(_ text: String, in state: OutputState) throws(Failure) -> String? {
        if text == "default" || text.isEmpty { return nil }
        // What is not listed may be plugged in later, or known to the engine alone.
        if state.devices.contains(where: { $0.name == text }) || state.devices.isEmpty { return text }
        let wanted = text.lowercased()
        let found = state.devices.filter {
            $0.name.lowercased().contains(wanted) || $0.title.lowercased().contains(wanted)
        }
        guard let first = found.first else {
            throw Failure(.notFound, "There is no sound device “\(text)”. `lockstep output` lists them.")
        }
        guard found.count == 1 else {
            throw .ambiguous("“\(text)” could be \(found.count) sound devices.", found.map { ($0.name, $0.title) })
        }
        return first.name
    }
}
