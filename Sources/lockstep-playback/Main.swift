import PlaybackService
import ProcessKit

@main
struct Main {
    static func main() async {
        // The engine’s many threads would otherwise each keep the memory of a file that they have closed.
        await ServiceProcess.run(PlaybackMachine.owner, returnsMemoryEarly: true) { PlaybackShell($0) }
    }
}
