import ArgumentParser
import BusKit
import LockstepClient
import PodcastModel
import WireMessages

struct SetOutput: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "output", abstract: "List the sound devices, or choose one.")
    @Argument(help: "A device’s name, a part of one, or `default`; without it, the devices are listed.")
    var device: String?
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.withSession { session in
            let seen = try await session.view(of: [.playback]).output ?? WireOutputState()
            // Where the devices can't be listed now, they are shown as they were seen last.
            let output = (try? await session.playback { $0.listOutputs = WireListOutputs() })?.output ?? seen
            guard let device else { return try Self.list(output, context.output) }
            let name = try Self.resolve(device, in: output)
            guard name != output.chosen else {
                let shown = name.isEmpty ? "the system’s default" : name
                return try context.output.change(output.json, "No change: the output is \(shown) already.")
            }
            let reply = try await session.playback { $0.setOutput.device = name }
            let chosen = reply.output.chosen.isEmpty ? "the system’s default" : reply.output.chosen
            try context.output.change(reply.output.json, "The output is \(chosen).")
        }
    }

    private static func list(_ state: WireOutputState, _ output: Output) throws {
        var table = TextTable([
            .init(heading: ""), .init(heading: "output"), .init(heading: "what it is", flexible: true),
        ])
        table.add([state.chosen.isEmpty ? "*" : "", "default", "The system’s default"])
        for device in state.devices {
            table.add([device.name == state.chosen ? "*" : "", device.name, device.description_p])
        }
        if !state.chosen.isEmpty, !state.devices.contains(where: { $0.name == state.chosen }) {
            table.add(["*", state.chosen, "Not available now"])
        }
        try output.value(state.json, lines: table.lines(width: Output.terminalWidth))
    }

    /// The device that a text means: its name, or a part of a name or description that no other has.
    static func resolve(_ text: String, in state: WireOutputState) throws(Failure) -> String {
        if text == "default" || text.isEmpty { return "" }
        // What is not listed may be plugged in later, or known to the engine alone.
        if state.devices.contains(where: { $0.name == text }) || state.devices.isEmpty { return text }
        let wanted = text.lowercased()
        let found = state.devices.filter {
            $0.name.lowercased().contains(wanted) || $0.description_p.lowercased().contains(wanted)
        }
        guard let first = found.first else {
            throw Failure(.notFound, "There is no sound device “\(text)”. `lockstep output` lists them.")
        }
        guard found.count == 1 else {
            throw Failure.ambiguous(
                "“\(text)” could be \(found.count) sound devices.", found.map { ($0.name, $0.description_p) })
        }
        return first.name
    }
}
