import LockstepClient
import PodcastModel

do throws(Failure) {
    let fleet = try Fleet.connect(as: "tray")
    Task.detached {
        while readLine() != nil {
            do throws(Failure) { _ = try await fleet.player.toggle() } catch { print(error.message) }
        }
    }
    for await state in fleet.states(every: .seconds(1)) {
        print(state.connection == .live ? state.player.sentence : "Reconnecting …")
    }
} catch { print(error.message) }
