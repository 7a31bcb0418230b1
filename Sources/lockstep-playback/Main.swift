import PlaybackService
import ProcessKit

@main
struct Main {
    static func main() async {
        await ServiceProcess.run(PlaybackMachine.owner) { PlaybackShell($0) }
    }
}
