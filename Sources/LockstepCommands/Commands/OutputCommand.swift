import ArgumentParser
import LockstepClient
import PodcastModel

struct SetOutput: FleetCommand {
    static let configuration = CommandConfiguration(
        commandName: "output", abstract: "List the sound devices, or choose one.")
    @Argument(help: "A device’s name, a part of one, or `default`; without it, the devices are listed.")
    var device: String?
    @OptionGroup var options: GlobalOptions
    var observation: Observation { .parts([.output]) }

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        let devices: OutputState
        do throws(Failure) { devices = try await fleet.player.outputs() } catch {
            // If the devices can’t be listed now, the last known ones are shown.
            guard let seen = try await fleet.current([.output]).output else { throw error }
            devices = seen
        }
        guard let device else { return try Self.list(devices, output) }
        let answer = try await fleet.player.setOutput(try Self.resolve(device, in: devices))
        let chosen = answer.value.chosen ?? "the system’s default"
        try output.change(
            answer.value.json, if: answer.changed, "The output is \(chosen).",
            else: "the output is already \(chosen)")
    }

    private static func list(_ state: OutputState, _ output: Output) throws {
        var rows = [[state.chosen == nil ? "*" : "", "default", "The system’s default"]]
        rows += state.devices.map { [$0.name == state.chosen ? "*" : "", $0.name, $0.title] }
        if let chosen = state.chosen, !state.devices.contains(where: { $0.name == chosen }) {
            rows.append(["*", chosen, "Not available now"])
        }
        try output.value(state.json, lines: TextTable(["", "output", .flexible("what it is")], rows).printed())
    }

    /// The name of the device that a text matches: its name, or a unique part of a name or description; nil for the
    /// system’s default.
    static func resolve(_ text: String, in state: OutputState) throws(Failure) -> String? {
        if text == "default" { return nil }
        // A device that isn’t listed may be connected later, or known only to the engine.
        if state.devices.contains(where: { $0.name == text }) || state.devices.isEmpty { return text }
        let wanted = text.lowercased()
        let found = state.devices.filter {
            $0.name.lowercased().contains(wanted) || $0.title.lowercased().contains(wanted)
        }
        guard let first = found.first else {
            throw Failure(.notFound, "There is no sound device “\(text)”. `lockstep output` lists them.")
        }
        guard found.count == 1 else {
            throw .ambiguous("“\(text)” could be \(found.count) sound devices.", found.map { ($0.name, $0.title, "") })
        }
        return first.name
    }
}
