import DownloadsService
import ProcessKit

@main
struct Main {
    static func main() async {
        await ServiceProcess.run(DownloadsMachine.owner) { DownloadsShell($0) }
    }
}
